! SPDX-License-Identifier: BSD-3-Clause
! Module dscomm on any number of ranks: calls against what arithmetic gives, and their
! failures. Rank 0 prints "ok" or "not ok" for all ranks.
program ranks
    use dscomm
    use, intrinsic :: iso_c_binding
    implicit none
    type(dscomm_group) :: world
    integer :: rank, p, triangle, tests = 0

    call dscomm_init(world)
    rank = dscomm_group_rank(world)
    p = dscomm_group_size(world)
    triangle = p * (p - 1) / 2 ! 0 + 1 + ... + p - 1
    call reductions()
    call moves()
    call blocks_of_any_size()
    call works()
    call messages()
    call memory()
    call groups()
    call failures()
    call store()
    if (rank == 0) print '(a, i0)', '1..', tests
    call dscomm_finalize(world)

contains

    ! One result of all ranks: whether none has failed
    subroutine check(passed, name)
        logical, intent(in) :: passed
        character(*), intent(in) :: name
        integer :: mine, all

        if (.not. passed) print '(a, i0, 2a)', '# rank ', rank, ': ', name
        mine = merge(1, 0, passed)
        call dscomm_all_reduce(world, mine, all, DSCOMM_INT32, DSCOMM_MIN)
        tests = tests + 1
        if (rank == 0) print '(a, i0, 2a)', trim(merge('ok    ', 'not ok', all == 1)) // &
            ' ', tests, ' - ', name
    end subroutine

    ! first, first + 1, ...
    function numbers(count, first) result(list)
        integer, intent(in) :: count, first
        integer :: list(count), i

        list = [(first + i, i = 0, count - 1)]
    end function

    subroutine reductions()
        real(c_double) :: send(2, 2), recv(2, 2), blocks(2, p), mine(2)
        real(c_float) :: scaled(1)
        complex(c_double), target :: points(2)
        real(c_double), pointer :: reals(:)
        type(c_ptr) :: address

        send = rank
        recv = -1
        call dscomm_all_reduce(world, send, recv, DSCOMM_FLOAT64, DSCOMM_SUM)
        call check(all(recv == triangle), 'all_reduce')
        call dscomm_all_reduce_in_place(world, send, DSCOMM_FLOAT64, DSCOMM_MAX)
        call check(all(send == p - 1), 'all_reduce in place')
        recv = -1
        send = 1
        call dscomm_reduce(world, send, recv, DSCOMM_FLOAT64, DSCOMM_SUM, p - 1)
        call check(rank < p - 1 .or. all(recv == p), 'reduce')
        call dscomm_all_reduce_premul_sum(world, [1.0], scaled, DSCOMM_FLOAT32, &
            real(rank, c_double))
        call check(scaled(1) == triangle, 'all_reduce_premul_sum')
        blocks = rank
        call dscomm_reduce_scatter(world, blocks, mine, DSCOMM_FLOAT64, DSCOMM_SUM)
        call check(all(mine == triangle), 'reduce_scatter')
        points = cmplx(rank, 1, c_double)
        address = c_loc(points)
        call c_f_pointer(address, reals, [4])
        call dscomm_all_reduce_in_place(world, reals, DSCOMM_FLOAT64, DSCOMM_SUM)
        call check(all(points == cmplx(triangle, p, c_double)), 'complex numbers')
    end subroutine

    subroutine moves()
        integer :: value, mine(2), all_of_them(2, p), i

        value = merge(42, 0, rank == p - 1)
        call dscomm_broadcast(world, value, DSCOMM_INT32, p - 1)
        call check(value == 42, 'broadcast')
        mine = numbers(2, 2 * rank)
        call dscomm_all_gather(world, mine, all_of_them, DSCOMM_INT32)
        call check(all(reshape(all_of_them, [2 * p]) == numbers(2 * p, 0)), 'all_gather')
        all_of_them = -1
        call dscomm_gather(world, mine, all_of_them, DSCOMM_INT32, 0)
        call check(rank > 0 .or. all(reshape(all_of_them, [2 * p]) == numbers(2 * p, 0)), &
            'gather')
        mine = -1
        all_of_them = reshape(numbers(2 * p, 0), [2, p])
        call dscomm_scatter(world, all_of_them, mine, DSCOMM_INT32, 0)
        call check(all(mine == numbers(2, 2 * rank)), 'scatter')
        all_of_them(1, :) = numbers(p, rank * p)
        all_of_them(2, :) = -1
        call dscomm_all_to_all(world, numbers(p, rank * p), all_of_them, DSCOMM_INT32)
        call check(all(reshape(all_of_them, [p]) == [(i * p + rank, i = 0, p - 1)]), &
            'all_to_all')
        call dscomm_barrier(world)
        call dscomm_monitored_barrier(world, 10000)
        call check(.true., 'barriers')
    end subroutine

    ! Rank r has r + 1 elements.
    subroutine blocks_of_any_size()
        integer(c_size_t) :: counts(p), displs(p)
        integer :: packed(triangle + p), got(triangle + p), mine(rank + 1), i, n

        n = 0
        do i = 1, p
            counts(i) = i
            displs(i) = size(got) - n - i ! from the end on
            packed(n + 1:n + i) = i - 1
            n = n + i
        end do
        mine = rank
        call dscomm_all_gather_v(world, mine, got, counts, DSCOMM_INT32)
        call check(all(got == packed), 'all_gather_v')
        call dscomm_all_gather_v(world, mine, got, counts, DSCOMM_INT32, displs)
        call check(all(got(size(got) - rank * (rank + 1) / 2 - rank: &
            size(got) - rank * (rank + 1) / 2) == rank), 'all_gather_v, displacements')
        got = -1
        call dscomm_gather_v(world, mine, got, counts, DSCOMM_INT32, 0)
        call check(rank > 0 .or. all(got == packed), 'gather_v')
        mine = -1
        call dscomm_scatter_v(world, packed, counts, mine, DSCOMM_INT32, 0)
        call check(all(mine == rank), 'scatter_v')
        call dscomm_reduce_scatter_v(world, packed, mine, counts, DSCOMM_INT32, DSCOMM_SUM)
        call check(all(mine == p * rank), 'reduce_scatter_v')
        call many_to_many(counts)
    end subroutine

    ! Each rank sends j + 1 elements to rank j, and gets rank + 1 of each.
    subroutine many_to_many(counts)
        integer(c_size_t), intent(in) :: counts(p)
        integer(c_size_t) :: same(p)
        integer :: send(triangle + p), recv(rank + 1, p), i

        same = rank + 1
        send = rank
        call dscomm_all_to_all_v(world, send, counts, recv, same, DSCOMM_INT32)
        call check(all([(all(recv(:, i) == i - 1), i = 1, p)]), 'all_to_all_v')
    end subroutine

    subroutine works()
        type(dscomm_work) :: work, two(2)
        integer, target, asynchronous :: send, recv, sums(2)
        integer :: index, right, left
        type(dscomm_message_info) :: info
        logical :: done

        right = modulo(rank + 1, p)
        left = modulo(rank - 1, p)
        send = rank
        call dscomm_all_reduce(world, send, recv, DSCOMM_INT32, DSCOMM_SUM, work)
        call dscomm_work_wait(work)
        call dscomm_work_test(work, done)
        call dscomm_work_free(work)
        call check(done .and. recv == triangle, 'a work')
        call dscomm_irecv(world, recv, DSCOMM_INT32, left, 7, work)
        call dscomm_send(world, send, DSCOMM_INT32, right, 7)
        call dscomm_work_wait(work, done=done)
        call dscomm_work_received(work, info)
        call dscomm_work_free(work)
        call check(done .and. recv == left .and. info%source == left .and. &
            info%bytes == 4, 'a message by a work')
        call dscomm_all_reduce(world, send, sums(1), DSCOMM_INT32, DSCOMM_SUM, two(1))
        call dscomm_all_reduce(world, send, sums(2), DSCOMM_INT32, DSCOMM_MAX, two(2))
        call dscomm_work_wait_any(two, index)
        call dscomm_work_wait_all(two)
        call check(index >= 1 .and. index <= 2 .and. all(sums == [triangle, p - 1]), &
            'several works')
        call dscomm_work_free(two(1))
        call dscomm_work_free(two(2))
        call dscomm_coalesce_begin(world)
        call dscomm_all_reduce(world, send, sums(1), DSCOMM_INT32, DSCOMM_MIN)
        call dscomm_all_reduce(world, send, sums(2), DSCOMM_INT32, DSCOMM_SUM)
        call dscomm_coalesce_end(world)
        call check(all(sums == [0, triangle]), 'coalesced calls')
    end subroutine

    subroutine messages()
        integer, target :: send(2), recv(4)
        integer(c_int) :: source
        integer(c_size_t) :: bytes
        type(dscomm_message_info) :: info
        type(dscomm_work) :: work
        integer :: ierror
        logical :: found

        call dscomm_probe(world, DSCOMM_ANY_SOURCE, 1, 0, found, info)
        call check(.not. found, 'probe finds nothing')
        call dscomm_barrier(world)
        send = rank
        call dscomm_isend(world, send, DSCOMM_INT32, modulo(rank + 1, p), 1, work)
        call dscomm_probe(world, modulo(rank - 1, p), 1, 10000, found, info)
        call check(found .and. info%bytes == 8, 'probe finds a message')
        call dscomm_recv(world, recv, DSCOMM_INT32, DSCOMM_ANY_SOURCE, 1, source, bytes)
        call check(bytes == 8 .and. all(recv(:2) == source), 'recv')
        call dscomm_work_wait(work)
        call dscomm_work_free(work)
        call dscomm_recv_within(world, recv, DSCOMM_INT32, 0, 2, 1, info, ierror)
        call check(ierror == DSCOMM_ERR_TIMEOUT, 'a deadline')
    end subroutine

    subroutine memory()
        type(c_ptr) :: address
        integer, pointer :: buffer(:)
        integer, target :: window(4), copy(4)
        integer(c_int8_t) :: key(DSCOMM_MEM_KEY_BYTES), keys(DSCOMM_MEM_KEY_BYTES, p)
        type(dscomm_mem) :: mem
        integer :: right, left

        right = modulo(rank + 1, p)
        left = modulo(rank - 1, p)
        call dscomm_mem_alloc(world, 16_c_size_t, address)
        call c_f_pointer(address, buffer, [4])
        buffer = 1
        call dscomm_all_reduce_in_place(world, buffer, DSCOMM_INT32, DSCOMM_SUM)
        call check(all(buffer == p), 'mem_alloc')
        call dscomm_mem_free(world, address)

        window = 0
        call dscomm_mem_register(world, window, 16_c_size_t, mem)
        call dscomm_mem_key(mem, key)
        call dscomm_all_gather(world, key, keys, DSCOMM_INT8)
        call dscomm_put(world, [rank], 4_c_size_t, keys(:, right + 1), 4_c_size_t)
        call dscomm_signal(world, right)
        call dscomm_signal_wait(world, left)
        call check(window(2) == left, 'put')
        call dscomm_get(world, copy, 16_c_size_t, keys(:, right + 1), 0_c_size_t)
        call check(copy(2) == rank, 'get')
        call dscomm_mem_deregister(mem)
        call check(.not. c_associated(mem%handle), 'mem_deregister')
    end subroutine

    subroutine groups()
        type(dscomm_group) :: last, same, none, mesh(2)
        integer :: number, other

        call dscomm_group_new(world, [p - 1], last)
        call dscomm_group_split(world, 0, -rank, same)
        call dscomm_group_split(world, DSCOMM_NO_COLOR, 0, none)
        call dscomm_group_mesh(world, [p, 1], mesh)
        call check(c_associated(last%handle) .eqv. rank == p - 1, 'group_new')
        call check(dscomm_group_rank(same) == p - 1 - rank .and. &
            .not. c_associated(none%handle), 'group_split')
        call check(dscomm_group_size(mesh(1)) == p .and. dscomm_group_size(mesh(2)) == 1, &
            'group_mesh')
        call dscomm_group_to_global(same, 0, number)
        call dscomm_group_from_global(same, rank, other)
        call check(number == p - 1 .and. other == dscomm_group_rank(same), &
            'numbers in the world')
        call check(dscomm_group_name(world) == 'world' .and. &
            index('self shm', dscomm_group_backend(world)) > 0, 'names')
        call dscomm_group_free(same)
        call check(.not. c_associated(same%handle), 'group_free')
        call dscomm_group_free(last)
        call dscomm_group_free(mesh(1))
        call dscomm_group_free(mesh(2))
    end subroutine

    subroutine failures()
        type(dscomm_group) :: other, left
        type(dscomm_failure) :: failure
        type(dscomm_work) :: none(2)
        integer :: few(1), many(2, 2), ierror, number, total

        many = rank
        call dscomm_all_gather(world, many, few, DSCOMM_INT32, ierror=ierror)
        call check(ierror == DSCOMM_ERR_INVALID .and. &
            index(dscomm_last_error(), 'buffer is NULL') > 0, 'a buffer that is too short')
        call dscomm_broadcast(world, many(1, :), DSCOMM_INT32, 0, ierror=ierror)
        call check(ierror == DSCOMM_ERR_INVALID, 'a buffer that is not contiguous')
        call dscomm_broadcast(world, few, DSCOMM_INT32, p, ierror=ierror)
        call check(ierror == DSCOMM_ERR_INVALID .and. &
            index(dscomm_last_error(), 'root') > 0, 'the sentence of the library')
        other = world
        call dscomm_group_free(other, ierror)
        call check(ierror == DSCOMM_ERR_STATE .and. c_associated(other%handle), &
            'a group that cannot be freed')
        call dscomm_work_wait_any(none, number, ierror=ierror)
        call check(ierror == DSCOMM_ERR_INVALID .and. number == 0, 'wait_any of none')
        call dscomm_group_split(world, 0, rank, other)
        if (rank == 0) call dscomm_group_abort(other, 'as told')
        call dscomm_barrier(other, ierror=ierror)
        call check(ierror == DSCOMM_ERR_ABORTED .and. &
            index(dscomm_last_error(), 'as told') > 0, 'an abort')
        call dscomm_group_failure(other, failure)
        call check(failure%kind == DSCOMM_FAILURE_ABORTED .and. failure%rank == 0, &
            'its record')
        call dscomm_group_shrink(other, left)
        call dscomm_all_reduce(left, 1, total, DSCOMM_INT32, DSCOMM_SUM)
        call check(total == p, 'a shrunk group')
    end subroutine

    subroutine store()
        type(dscomm_store) :: all_keys
        character(:), allocatable :: value
        integer(c_int64_t) :: total
        integer :: ierror
        logical :: deleted

        call dscomm_store_open('memory://', all_keys)
        call dscomm_store_set(all_keys, 'key  ', 'a value ')
        call dscomm_store_get(all_keys, 'key', value)
        call check(value == 'a value ' .and. len(value) == 8, 'store')
        call dscomm_store_add(all_keys, 'sum', 3_c_int64_t, total)
        call dscomm_store_delete(all_keys, 'key', deleted)
        call check(total == 3 .and. deleted, 'add and delete')
        call dscomm_store_get(all_keys, 'key', value, 1, ierror)
        call check(ierror == DSCOMM_ERR_TIMEOUT, 'a key that is missing')
        call dscomm_store_close(all_keys)
    end subroutine
end program
