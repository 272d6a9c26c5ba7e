! SPDX-License-Identifier: BSD-3-Clause
! dscomm for Fortran 2018. Each subroutine is the function of its name in C, and has
! its rules. Counts are the elements of buffers, which are contiguous; one that is
! not, or too short, is passed as NULL, which the call refuses. Without ierror a
! failure ends the program, with its sentence. See dscomm-fortran(7).
module dscomm
    use dscomm_arguments
    use dscomm_c
    implicit none

    private :: address, c_string, c_text, deadline, elements, error_unit, finish, &
        finish_work, on, ranks, text

contains

    ! Start, end, groups

    ! The settings are those of the environment: DSCOMM_BACKEND, DSCOMM_TIMEOUT, ...
    subroutine dscomm_init(world, ierror)
        type(dscomm_group), intent(inout) :: world
        integer, intent(out), optional :: ierror

        call finish(c_init(c_null_ptr, world), ierror)
    end subroutine

    subroutine dscomm_finalize(world, ierror)
        type(dscomm_group), intent(inout) :: world
        integer(c_int) :: status
        integer, intent(out), optional :: ierror

        status = c_finalize(world%handle)
        world%handle = c_null_ptr
        call finish(status, ierror)
    end subroutine

    ! The handle of a rank that is not in the new group is c_null_ptr.
    subroutine dscomm_group_new(parent, members, group, ierror)
        type(dscomm_group), intent(in) :: parent
        integer(c_int), intent(in) :: members(:)
        type(dscomm_group), intent(inout) :: group
        integer, intent(out), optional :: ierror

        call finish(c_group_new(parent%handle, members, size(members, kind=c_int), &
            c_null_ptr, group), ierror)
    end subroutine

    subroutine dscomm_group_split(parent, color, key, group, ierror)
        type(dscomm_group), intent(in) :: parent
        integer(c_int), intent(in) :: color, key
        type(dscomm_group), intent(inout) :: group
        integer, intent(out), optional :: ierror

        call finish(c_group_split(parent%handle, color, key, c_null_ptr, group), &
            ierror)
    end subroutine

    ! A mesh of C: the last dimension varies fastest.
    subroutine dscomm_group_mesh(parent, dims, groups, ierror)
        type(dscomm_group), intent(in) :: parent
        integer(c_int), intent(in) :: dims(:)
        type(dscomm_group), intent(inout) :: groups(size(dims))
        integer, intent(out), optional :: ierror

        call finish(c_group_mesh(parent%handle, dims, size(dims, kind=c_int), &
            groups), ierror)
    end subroutine

    subroutine dscomm_group_shrink(group, shrunk, ierror)
        type(dscomm_group), intent(in) :: group
        type(dscomm_group), intent(inout) :: shrunk
        integer, intent(out), optional :: ierror

        call finish(c_group_shrink(group%handle, c_null_ptr, shrunk), ierror)
    end subroutine

    subroutine dscomm_group_free(group, ierror)
        type(dscomm_group), intent(inout) :: group
        integer(c_int) :: status
        integer, intent(out), optional :: ierror

        status = c_group_free(group%handle)
        if (status == DSCOMM_OK) group%handle = c_null_ptr
        call finish(status, ierror)
    end subroutine

    subroutine dscomm_group_abort(group, reason, ierror)
        type(dscomm_group), intent(in) :: group
        character(*), intent(in) :: reason
        integer, intent(out), optional :: ierror

        call finish(c_group_abort(group%handle, c_string(reason)), ierror)
    end subroutine

    subroutine dscomm_group_status(group, ierror)
        type(dscomm_group), intent(in) :: group
        integer, intent(out), optional :: ierror

        call finish(c_group_status(group%handle), ierror)
    end subroutine

    subroutine dscomm_group_failure(group, failure, ierror)
        type(dscomm_group), intent(in) :: group
        type(dscomm_failure), intent(inout) :: failure
        integer, intent(out), optional :: ierror

        failure%size = c_sizeof(failure)
        call finish(c_group_failure(group%handle, failure), ierror)
    end subroutine

    subroutine dscomm_group_to_global(group, rank, global, ierror)
        type(dscomm_group), intent(in) :: group
        integer(c_int), intent(in) :: rank
        integer(c_int), intent(out) :: global
        integer, intent(out), optional :: ierror

        call finish(c_group_to_global(group%handle, rank, global), ierror)
    end subroutine

    subroutine dscomm_group_from_global(group, global, rank, ierror)
        type(dscomm_group), intent(in) :: group
        integer(c_int), intent(in) :: global
        integer(c_int), intent(out) :: rank
        integer, intent(out), optional :: ierror

        call finish(c_group_from_global(group%handle, global, rank), ierror)
    end subroutine

    integer function dscomm_group_rank(group) result(number)
        type(dscomm_group), intent(in) :: group

        number = c_group_rank(group%handle)
    end function

    integer function dscomm_group_size(group) result(number)
        type(dscomm_group), intent(in) :: group

        number = c_group_size(group%handle)
    end function

    integer function dscomm_group_local_rank(group) result(number)
        type(dscomm_group), intent(in) :: group

        number = c_group_local_rank(group%handle)
    end function

    integer function dscomm_group_local_size(group) result(number)
        type(dscomm_group), intent(in) :: group

        number = c_group_local_size(group%handle)
    end function

    integer function dscomm_group_node_rank(group) result(number)
        type(dscomm_group), intent(in) :: group

        number = c_group_node_rank(group%handle)
    end function

    integer function dscomm_group_timeout(group) result(number)
        type(dscomm_group), intent(in) :: group

        number = c_group_timeout(group%handle)
    end function

    function dscomm_group_name(group) result(name)
        type(dscomm_group), intent(in) :: group
        character(:), allocatable :: name

        name = c_text(c_group_name(group%handle))
    end function

    function dscomm_group_backend(group) result(name)
        type(dscomm_group), intent(in) :: group
        character(:), allocatable :: name

        name = c_text(c_group_backend(group%handle))
    end function

    ! Collectives. With work they return at once; without, when they are complete.

    subroutine dscomm_broadcast(group, buffer, dtype, root, work, ierror)
        type(dscomm_group), intent(in) :: group
        type(*), dimension(..), target, asynchronous :: buffer
        integer(c_int), intent(in) :: dtype, root
        type(dscomm_work), intent(inout), optional :: work
        integer, intent(out), optional :: ierror

        call finish(c_broadcast(group%handle, address(buffer), elements(buffer), &
            dtype, root, work), ierror)
    end subroutine

    subroutine dscomm_reduce(group, send, recv, dtype, op, root, work, ierror)
        type(dscomm_group), intent(in) :: group
        type(*), dimension(..), intent(in), target, asynchronous :: send
        type(*), dimension(..), target, asynchronous :: recv
        integer(c_int), intent(in) :: dtype, op, root
        type(dscomm_work), intent(inout), optional :: work
        integer, intent(out), optional :: ierror

        call finish(c_reduce(group%handle, address(send), address(recv, on(group, &
            root, elements(send))), elements(send), dtype, op, root, work), ierror)
    end subroutine

    subroutine dscomm_all_reduce(group, send, recv, dtype, op, work, ierror)
        type(dscomm_group), intent(in) :: group
        type(*), dimension(..), intent(in), target, asynchronous :: send
        type(*), dimension(..), target, asynchronous :: recv
        integer(c_int), intent(in) :: dtype, op
        type(dscomm_work), intent(inout), optional :: work
        integer, intent(out), optional :: ierror

        call finish(c_all_reduce(group%handle, address(send), address(recv, &
            elements(send)), elements(send), dtype, op, work), ierror)
    end subroutine

    ! The same with one buffer, since Fortran forbids to pass it twice
    subroutine dscomm_all_reduce_in_place(group, buffer, dtype, op, work, ierror)
        type(dscomm_group), intent(in) :: group
        type(*), dimension(..), target, asynchronous :: buffer
        integer(c_int), intent(in) :: dtype, op
        type(dscomm_work), intent(inout), optional :: work
        integer, intent(out), optional :: ierror

        call finish(c_all_reduce(group%handle, address(buffer), address(buffer), &
            elements(buffer), dtype, op, work), ierror)
    end subroutine

    subroutine dscomm_all_reduce_premul_sum(group, send, recv, dtype, factor, work, &
        ierror)
        type(dscomm_group), intent(in) :: group
        type(*), dimension(..), intent(in), target, asynchronous :: send
        type(*), dimension(..), target, asynchronous :: recv
        real(c_double), intent(in) :: factor
        integer(c_int), intent(in) :: dtype
        type(dscomm_work), intent(inout), optional :: work
        integer, intent(out), optional :: ierror

        call finish(c_all_reduce_premul_sum(group%handle, address(send), &
            address(recv, elements(send)), elements(send), dtype, factor, work), &
            ierror)
    end subroutine

    subroutine dscomm_reduce_scatter(group, send, recv, dtype, op, work, ierror)
        type(dscomm_group), intent(in) :: group
        type(*), dimension(..), intent(in), target, asynchronous :: send
        type(*), dimension(..), target, asynchronous :: recv
        integer(c_int), intent(in) :: dtype, op
        type(dscomm_work), intent(inout), optional :: work
        integer, intent(out), optional :: ierror

        call finish(c_reduce_scatter(group%handle, address(send, ranks(group) * &
            elements(recv)), address(recv), elements(recv), dtype, op, work), ierror)
    end subroutine

    subroutine dscomm_all_gather(group, send, recv, dtype, work, ierror)
        type(dscomm_group), intent(in) :: group
        type(*), dimension(..), intent(in), target, asynchronous :: send
        type(*), dimension(..), target, asynchronous :: recv
        integer(c_int), intent(in) :: dtype
        type(dscomm_work), intent(inout), optional :: work
        integer, intent(out), optional :: ierror

        call finish(c_all_gather(group%handle, address(send), address(recv, &
            ranks(group) * elements(send)), elements(send), dtype, work), ierror)
    end subroutine

    subroutine dscomm_gather(group, send, recv, dtype, root, work, ierror)
        type(dscomm_group), intent(in) :: group
        type(*), dimension(..), intent(in), target, asynchronous :: send
        type(*), dimension(..), target, asynchronous :: recv
        integer(c_int), intent(in) :: dtype, root
        type(dscomm_work), intent(inout), optional :: work
        integer, intent(out), optional :: ierror

        call finish(c_gather(group%handle, address(send), address(recv, on(group, &
            root, ranks(group) * elements(send))), elements(send), dtype, root, &
            work), ierror)
    end subroutine

    subroutine dscomm_scatter(group, send, recv, dtype, root, work, ierror)
        type(dscomm_group), intent(in) :: group
        type(*), dimension(..), intent(in), target, asynchronous :: send
        type(*), dimension(..), target, asynchronous :: recv
        integer(c_int), intent(in) :: dtype, root
        type(dscomm_work), intent(inout), optional :: work
        integer, intent(out), optional :: ierror

        call finish(c_scatter(group%handle, address(send, on(group, root, &
            ranks(group) * elements(recv))), address(recv), elements(recv), dtype, &
            root, work), ierror)
    end subroutine

    ! send has a block for each rank, all of the same size.
    subroutine dscomm_all_to_all(group, send, recv, dtype, work, ierror)
        type(dscomm_group), intent(in) :: group
        type(*), dimension(..), intent(in), target, asynchronous :: send
        type(*), dimension(..), target, asynchronous :: recv
        integer(c_int), intent(in) :: dtype
        type(dscomm_work), intent(inout), optional :: work
        integer, intent(out), optional :: ierror
        integer(c_size_t) :: count

        count = (elements(send) + ranks(group) - 1) / ranks(group)
        call finish(c_all_to_all(group%handle, address(send, ranks(group) * count), &
            address(recv, ranks(group) * count), count, dtype, work), ierror)
    end subroutine

    ! Blocks of any size. Counts, and displacements from 0 on, have an entry for each
    ! rank; displacements that are left out are packed. Counts are not compared with
    ! the lengths of buffers.

    subroutine dscomm_all_gather_v(group, send, recv, recv_counts, dtype, &
        recv_displs, work, ierror)
        type(dscomm_group), intent(in) :: group
        type(*), dimension(..), intent(in), target, asynchronous :: send
        type(*), dimension(..), target, asynchronous :: recv
        integer(c_size_t), intent(in), asynchronous :: recv_counts(*)
        integer(c_int), intent(in) :: dtype
        integer(c_size_t), intent(in), optional, asynchronous :: recv_displs(*)
        type(dscomm_work), intent(inout), optional :: work
        integer, intent(out), optional :: ierror

        call finish(c_all_gather_v(group%handle, address(send), elements(send), &
            address(recv), recv_counts, recv_displs, dtype, work), ierror)
    end subroutine

    subroutine dscomm_reduce_scatter_v(group, send, recv, recv_counts, dtype, op, &
        work, ierror)
        type(dscomm_group), intent(in) :: group
        type(*), dimension(..), intent(in), target, asynchronous :: send
        type(*), dimension(..), target, asynchronous :: recv
        integer(c_size_t), intent(in), asynchronous :: recv_counts(*)
        integer(c_int), intent(in) :: dtype, op
        type(dscomm_work), intent(inout), optional :: work
        integer, intent(out), optional :: ierror

        call finish(c_reduce_scatter_v(group%handle, address(send), address(recv), &
            recv_counts, dtype, op, work), ierror)
    end subroutine

    subroutine dscomm_gather_v(group, send, recv, recv_counts, dtype, root, &
        recv_displs, work, ierror)
        type(dscomm_group), intent(in) :: group
        type(*), dimension(..), intent(in), target, asynchronous :: send
        type(*), dimension(..), target, asynchronous :: recv
        integer(c_size_t), intent(in), asynchronous :: recv_counts(*)
        integer(c_int), intent(in) :: dtype, root
        integer(c_size_t), intent(in), optional, asynchronous :: recv_displs(*)
        type(dscomm_work), intent(inout), optional :: work
        integer, intent(out), optional :: ierror

        call finish(c_gather_v(group%handle, address(send), elements(send), &
            address(recv), recv_counts, recv_displs, dtype, root, work), ierror)
    end subroutine

    subroutine dscomm_scatter_v(group, send, send_counts, recv, dtype, root, &
        send_displs, work, ierror)
        type(dscomm_group), intent(in) :: group
        type(*), dimension(..), intent(in), target, asynchronous :: send
        type(*), dimension(..), target, asynchronous :: recv
        integer(c_size_t), intent(in), asynchronous :: send_counts(*)
        integer(c_int), intent(in) :: dtype, root
        integer(c_size_t), intent(in), optional, asynchronous :: send_displs(*)
        type(dscomm_work), intent(inout), optional :: work
        integer, intent(out), optional :: ierror

        call finish(c_scatter_v(group%handle, address(send), send_counts, &
            send_displs, address(recv), elements(recv), dtype, root, work), ierror)
    end subroutine

    subroutine dscomm_all_to_all_v(group, send, send_counts, recv, recv_counts, &
        dtype, send_displs, recv_displs, work, ierror)
        type(dscomm_group), intent(in) :: group
        type(*), dimension(..), intent(in), target, asynchronous :: send
        type(*), dimension(..), target, asynchronous :: recv
        integer(c_size_t), intent(in), asynchronous :: send_counts(*), recv_counts(*)
        integer(c_int), intent(in) :: dtype
        integer(c_size_t), intent(in), optional, asynchronous :: send_displs(*), &
            recv_displs(*)
        type(dscomm_work), intent(inout), optional :: work
        integer, intent(out), optional :: ierror

        call finish(c_all_to_all_v(group%handle, address(send), send_counts, &
            send_displs, address(recv), recv_counts, recv_displs, dtype, work), &
            ierror)
    end subroutine

    subroutine dscomm_barrier(group, work, ierror)
        type(dscomm_group), intent(in) :: group
        type(dscomm_work), intent(inout), optional :: work
        integer, intent(out), optional :: ierror

        call finish(c_barrier(group%handle, work), ierror)
    end subroutine

    subroutine dscomm_monitored_barrier(group, timeout_ms, ierror)
        type(dscomm_group), intent(in) :: group
        integer(c_int), intent(in) :: timeout_ms
        integer, intent(out), optional :: ierror

        call finish(c_monitored_barrier(group%handle, timeout_ms), ierror)
    end subroutine

    ! Messages

    subroutine dscomm_send(group, buffer, dtype, dest, tag, ierror)
        type(dscomm_group), intent(in) :: group
        type(*), dimension(..), intent(in), target :: buffer
        integer(c_int), intent(in) :: dtype, dest, tag
        integer, intent(out), optional :: ierror

        call finish(c_send(group%handle, address(buffer), elements(buffer), dtype, &
            dest, tag), ierror)
    end subroutine

    subroutine dscomm_recv(group, buffer, dtype, source, tag, got_source, got_bytes, &
        ierror)
        type(dscomm_group), intent(in) :: group
        type(*), dimension(..), target :: buffer
        integer(c_int), intent(in) :: dtype, source, tag
        integer(c_int), intent(out), optional :: got_source
        integer(c_size_t), intent(out), optional :: got_bytes
        integer, intent(out), optional :: ierror

        call finish(c_recv(group%handle, address(buffer), elements(buffer), dtype, &
            source, tag, got_source, got_bytes), ierror)
    end subroutine

    subroutine dscomm_isend(group, buffer, dtype, dest, tag, work, ierror)
        type(dscomm_group), intent(in) :: group
        type(*), dimension(..), intent(in), target, asynchronous :: buffer
        integer(c_int), intent(in) :: dtype, dest, tag
        type(dscomm_work), intent(inout) :: work
        integer, intent(out), optional :: ierror

        call finish(c_isend(group%handle, address(buffer), elements(buffer), dtype, &
            dest, tag, work), ierror)
    end subroutine

    subroutine dscomm_irecv(group, buffer, dtype, source, tag, work, ierror)
        type(dscomm_group), intent(in) :: group
        type(*), dimension(..), target, asynchronous :: buffer
        integer(c_int), intent(in) :: dtype, source, tag
        type(dscomm_work), intent(inout) :: work
        integer, intent(out), optional :: ierror

        call finish(c_irecv(group%handle, address(buffer), elements(buffer), dtype, &
            source, tag, work), ierror)
    end subroutine

    subroutine dscomm_recv_within(group, buffer, dtype, source, tag, timeout_ms, &
        info, ierror)
        type(dscomm_group), intent(in) :: group
        type(*), dimension(..), target :: buffer
        integer(c_int), intent(in) :: dtype, source, tag, timeout_ms
        type(dscomm_message_info), intent(out) :: info
        integer, intent(out), optional :: ierror

        info%size = c_sizeof(info)
        call finish(c_recv_within(group%handle, address(buffer), elements(buffer), &
            dtype, source, tag, timeout_ms, info), ierror)
    end subroutine

    subroutine dscomm_probe(group, source, tag, timeout_ms, found, info, ierror)
        type(dscomm_group), intent(in) :: group
        integer(c_int), intent(in) :: source, tag, timeout_ms
        logical, intent(out) :: found
        type(dscomm_message_info), intent(out) :: info
        integer(c_int) :: status
        integer, intent(out), optional :: ierror

        info%size = c_sizeof(info)
        status = c_probe(group%handle, source, tag, timeout_ms, info)
        found = status == DSCOMM_OK
        call finish(status, ierror)
    end subroutine

    ! Works

    ! Waits at most timeout_ms, without it for as long as the group permits.
    subroutine dscomm_work_wait(work, timeout_ms, done, ierror)
        type(dscomm_work), intent(in) :: work
        integer(c_int), intent(in), optional :: timeout_ms
        logical, intent(out), optional :: done
        integer, intent(out), optional :: ierror

        call finish_work(c_work_wait(work%handle, deadline(timeout_ms)), done, &
            ierror)
    end subroutine

    subroutine dscomm_work_test(work, done, ierror)
        type(dscomm_work), intent(in) :: work
        logical, intent(out) :: done
        integer, intent(out), optional :: ierror

        call finish_work(c_work_test(work%handle), done, ierror)
    end subroutine

    subroutine dscomm_work_wait_all(works, timeout_ms, done, ierror)
        type(dscomm_work), intent(in) :: works(:)
        integer(c_int), intent(in), optional :: timeout_ms
        logical, intent(out), optional :: done
        integer, intent(out), optional :: ierror

        call finish_work(c_work_wait_all(works, elements(works), &
            deadline(timeout_ms)), done, ierror)
    end subroutine

    ! index is from 1 on; 0: none is complete, within timeout_ms or by a failure.
    subroutine dscomm_work_wait_any(works, index, timeout_ms, ierror)
        type(dscomm_work), intent(in) :: works(:)
        integer, intent(out) :: index
        integer(c_int), intent(in), optional :: timeout_ms
        integer(c_size_t) :: found
        integer(c_int) :: status
        integer, intent(out), optional :: ierror

        found = elements(works)
        status = c_work_wait_any(works, elements(works), deadline(timeout_ms), found)
        index = merge(int(found) + 1, 0, status /= DSCOMM_IN_PROGRESS .and. &
            found < elements(works))
        call finish(status, ierror)
    end subroutine

    subroutine dscomm_work_free(work)
        type(dscomm_work), intent(inout) :: work

        call c_work_free(work%handle)
        work%handle = c_null_ptr
    end subroutine

    subroutine dscomm_work_cancel(work, ierror)
        type(dscomm_work), intent(in) :: work
        integer, intent(out), optional :: ierror

        call finish(c_work_cancel(work%handle), ierror)
    end subroutine

    subroutine dscomm_work_set_timeout(work, timeout_ms, ierror)
        type(dscomm_work), intent(in) :: work
        integer(c_int), intent(in) :: timeout_ms
        integer, intent(out), optional :: ierror

        call finish(c_work_set_timeout(work%handle, timeout_ms), ierror)
    end subroutine

    subroutine dscomm_work_received(work, info, ierror)
        type(dscomm_work), intent(in) :: work
        type(dscomm_message_info), intent(out) :: info
        integer, intent(out), optional :: ierror

        info%size = c_sizeof(info)
        call finish(c_work_received_at(work%handle, 0_c_size_t, info), ierror)
    end subroutine

    subroutine dscomm_coalesce_begin(group, ierror)
        type(dscomm_group), intent(in) :: group
        integer, intent(out), optional :: ierror

        call finish(c_coalesce_begin(group%handle), ierror)
    end subroutine

    subroutine dscomm_coalesce_end(group, work, ierror)
        type(dscomm_group), intent(in) :: group
        type(dscomm_work), intent(inout), optional :: work
        integer, intent(out), optional :: ierror

        call finish(c_coalesce_end(group%handle, work), ierror)
    end subroutine

    ! Memory. Keys are of DSCOMM_MEM_KEY_BYTES, offsets in bytes.

    ! memory becomes an array by c_f_pointer().
    subroutine dscomm_mem_alloc(group, bytes, memory, ierror)
        type(dscomm_group), intent(in) :: group
        integer(c_size_t), intent(in) :: bytes
        type(c_ptr), intent(out) :: memory
        integer, intent(out), optional :: ierror

        call finish(c_mem_alloc(group%handle, bytes, memory), ierror)
    end subroutine

    subroutine dscomm_mem_free(group, memory, ierror)
        type(dscomm_group), intent(in) :: group
        type(c_ptr), intent(in) :: memory
        integer, intent(out), optional :: ierror

        call finish(c_mem_free(group%handle, memory), ierror)
    end subroutine

    subroutine dscomm_mem_register(group, buffer, bytes, mem, ierror)
        type(dscomm_group), intent(in) :: group
        type(*), dimension(..), target, asynchronous :: buffer
        integer(c_size_t), intent(in) :: bytes
        type(dscomm_mem), intent(inout) :: mem
        integer, intent(out), optional :: ierror

        call finish(c_mem_register(group%handle, address(buffer), bytes, mem), &
            ierror)
    end subroutine

    subroutine dscomm_mem_key(mem, key, ierror)
        type(dscomm_mem), intent(in) :: mem
        integer(c_int8_t), intent(out) :: key(DSCOMM_MEM_KEY_BYTES)
        integer, intent(out), optional :: ierror

        call finish(c_mem_key(mem%handle, key), ierror)
    end subroutine

    ! With two failures the memory stays registered.
    subroutine dscomm_mem_deregister(mem, ierror)
        type(dscomm_mem), intent(inout) :: mem
        integer(c_int) :: status
        integer, intent(out), optional :: ierror

        status = c_mem_deregister(mem%handle)
        if (status /= DSCOMM_ERR_STATE .and. status /= DSCOMM_ERR_NO_MEMORY) &
            mem%handle = c_null_ptr
        call finish(status, ierror)
    end subroutine

    subroutine dscomm_put(group, buffer, bytes, key, offset, work, ierror)
        type(dscomm_group), intent(in) :: group
        type(*), dimension(..), intent(in), target, asynchronous :: buffer
        integer(c_size_t), intent(in) :: bytes, offset
        integer(c_int8_t), intent(in) :: key(DSCOMM_MEM_KEY_BYTES)
        type(dscomm_work), intent(inout), optional :: work
        integer, intent(out), optional :: ierror

        call finish(c_put(group%handle, address(buffer), bytes, key, offset, work), &
            ierror)
    end subroutine

    subroutine dscomm_get(group, buffer, bytes, key, offset, work, ierror)
        type(dscomm_group), intent(in) :: group
        type(*), dimension(..), target, asynchronous :: buffer
        integer(c_size_t), intent(in) :: bytes, offset
        integer(c_int8_t), intent(in) :: key(DSCOMM_MEM_KEY_BYTES)
        type(dscomm_work), intent(inout), optional :: work
        integer, intent(out), optional :: ierror

        call finish(c_get(group%handle, address(buffer), bytes, key, offset, work), &
            ierror)
    end subroutine

    subroutine dscomm_signal(group, rank, work, ierror)
        type(dscomm_group), intent(in) :: group
        integer(c_int), intent(in) :: rank
        type(dscomm_work), intent(inout), optional :: work
        integer, intent(out), optional :: ierror

        call finish(c_signal(group%handle, rank, work), ierror)
    end subroutine

    subroutine dscomm_signal_wait(group, rank, timeout_ms, ierror)
        type(dscomm_group), intent(in) :: group
        integer(c_int), intent(in) :: rank
        integer(c_int), intent(in), optional :: timeout_ms
        integer, intent(out), optional :: ierror

        call finish(c_signal_wait(group%handle, rank, deadline(timeout_ms)), ierror)
    end subroutine

    ! The store. Values are text, or bytes in it.

    subroutine dscomm_store_open(url, store, ierror)
        character(*), intent(in) :: url
        type(dscomm_store), intent(inout) :: store
        integer, intent(out), optional :: ierror

        call finish(c_store_open(c_string(url), c_null_ptr, store), ierror)
    end subroutine

    subroutine dscomm_store_close(store)
        type(dscomm_store), intent(inout) :: store

        call c_store_close(store%handle)
        store%handle = c_null_ptr
    end subroutine

    subroutine dscomm_store_set(store, key, value, ierror)
        type(dscomm_store), intent(in) :: store
        character(*), intent(in) :: key, value
        integer, intent(out), optional :: ierror

        call finish(c_store_set(store%handle, c_string(key), value, len(value, &
            c_size_t)), ierror)
    end subroutine

    subroutine dscomm_store_get(store, key, value, timeout_ms, ierror)
        type(dscomm_store), intent(in) :: store
        character(*), intent(in) :: key
        character(:), allocatable, intent(out) :: value
        integer(c_int), intent(in), optional :: timeout_ms
        type(c_ptr) :: bytes
        integer(c_size_t) :: size
        integer(c_int) :: status
        integer, intent(out), optional :: ierror

        status = c_store_get(store%handle, c_string(key), deadline(timeout_ms), &
            bytes, size)
        if (status == DSCOMM_OK) then
            value = text(bytes, size)
            call c_store_free(bytes)
        end if
        call finish(status, ierror)
    end subroutine

    subroutine dscomm_store_add(store, key, delta, sum, ierror)
        type(dscomm_store), intent(in) :: store
        character(*), intent(in) :: key
        integer(c_int64_t), intent(in) :: delta
        integer(c_int64_t), intent(out) :: sum
        integer, intent(out), optional :: ierror

        call finish(c_store_add(store%handle, c_string(key), delta, sum), ierror)
    end subroutine

    subroutine dscomm_store_delete(store, key, deleted, ierror)
        type(dscomm_store), intent(in) :: store
        character(*), intent(in) :: key
        logical, intent(out) :: deleted
        integer(c_int) :: existed
        integer(c_int) :: status
        integer, intent(out), optional :: ierror

        status = c_store_delete(store%handle, c_string(key), existed)
        deleted = status == DSCOMM_OK .and. existed == 1
        call finish(status, ierror)
    end subroutine
end module
