// SPDX-License-Identifier: BSD-3-Clause
// The smallest job in C++: every rank gives its number, and all get the sum.
#include <cstdio>
#include <dscomm/dscomm.hpp>

int main()
{
    try {
        const dscomm::Group world = dscomm::init();
        int sum = world.rank();

        world.all_reduce(dscomm::one(sum), DSCOMM_SUM);
        std::printf("rank %d of %d: the sum of all ranks is %d\n", world.rank(),
                    world.size(), sum);
    } catch (const dscomm::Error &error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
