! SPDX-License-Identifier: BSD-3-Clause
! The smallest job in Fortran: every rank gives its number, and all get the sum.
program hello
    use dscomm
    implicit none
    type(dscomm_group) :: world
    integer :: rank, total

    call dscomm_init(world)
    rank = dscomm_group_rank(world)
    call dscomm_all_reduce(world, rank, total, DSCOMM_INT32, DSCOMM_SUM)
    print '(3(a, i0))', 'rank ', rank, ' of ', dscomm_group_size(world), &
        ': the sum of all ranks is ', total
    call dscomm_finalize(world)
end program
