// SPDX-License-Identifier: BSD-3-Clause
// Tensors that dscomm moves without copies.
#include "backend.hpp"

#include <cerrno>
#include <cstring>
#include <limits>
#include <sys/mman.h>

namespace dscomm_torch
{
namespace
{

// Pages of this process, not dscomm_mem_alloc(), whose memory ends with the
// group.
class Pages
{
  public:
    Pages(std::shared_ptr<Group> group, size_t bytes)
        : group_(std::move(group)), bytes_(bytes),
          memory_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))
    {
        TORCH_CHECK_WITH(OutOfMemoryError, memory_ != MAP_FAILED,
                         "dscomm: no memory for a tensor of ", bytes,
                         " bytes: ", std::strerror(errno));
        Turn turn(*group_);
        if (dscomm_mem_register(group_->world(), memory_, bytes, &mem_) < 0) {
            const std::string sentence = dscomm_last_error();
            munmap(memory_, bytes);
            TORCH_CHECK_WITH(DistBackendError, false, "dscomm: ", sentence);
        }
    }
    ~Pages()
    {
        group_->unmap(mem_, memory_, bytes_);
    }
    Pages(const Pages &) = delete;
    Pages &operator=(const Pages &) = delete;

    void *memory() const
    {
        return memory_;
    }

  private:
    std::shared_ptr<Group> group_;
    size_t bytes_;
    void *memory_;
    dscomm_mem_t *mem_ = nullptr; // freed with the world
};

} // namespace

// index is -1 for the CPU.
bool Backend::supportsTensorAlloc(c10::DeviceIndex index)
{
    return index < 0 && group_->has(DSCOMM_CAP_ZERO_COPY);
}

// The tensor's memory is registered with the group. After the group has ended
// it is a tensor like any other.
at::Tensor Backend::allocateTensor(long size, at::TensorOptions options)
{
    TORCH_CHECK(options.device().is_cpu(),
                "dscomm allocates tensors on the CPU only, not on ",
                options.device());
    const auto most = std::numeric_limits<int64_t>::max() /
                      static_cast<int64_t>(options.dtype().itemsize());
    TORCH_CHECK(size >= 0 && size <= most, "dscomm: a tensor of ", size,
                " elements");
    if (size == 0)
        return at::empty({0}, options);
    auto pages = std::make_unique<Pages>(
        group_, static_cast<size_t>(size) * options.dtype().itemsize());
    void *memory = pages->memory();
    const auto free = [](void *pages) { delete static_cast<Pages *>(pages); };

    return at::for_blob(memory, {size})
        .context(pages.release(), free)
        .options(options)
        .make_tensor();
}

} // namespace dscomm_torch
