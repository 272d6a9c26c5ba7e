! SPDX-License-Identifier: BSD-3-Clause
! The interface of <dscomm/dscomm.h> for Fortran 2018: constants, handles, and the C
! functions as they are. Module dscomm has the subroutines for programs.
module dscomm_c
    use, intrinsic :: iso_c_binding
    implicit none

    ! Types of elements
    integer(c_int), parameter :: DSCOMM_INT8 = 0
    integer(c_int), parameter :: DSCOMM_UINT8 = 1
    integer(c_int), parameter :: DSCOMM_INT16 = 2
    integer(c_int), parameter :: DSCOMM_UINT16 = 3
    integer(c_int), parameter :: DSCOMM_INT32 = 4
    integer(c_int), parameter :: DSCOMM_UINT32 = 5
    integer(c_int), parameter :: DSCOMM_INT64 = 6
    integer(c_int), parameter :: DSCOMM_UINT64 = 7
    integer(c_int), parameter :: DSCOMM_FLOAT16 = 8
    integer(c_int), parameter :: DSCOMM_BFLOAT16 = 9
    integer(c_int), parameter :: DSCOMM_FLOAT32 = 10
    integer(c_int), parameter :: DSCOMM_FLOAT64 = 11
    integer(c_int), parameter :: DSCOMM_FLOAT8_E4M3 = 12
    integer(c_int), parameter :: DSCOMM_FLOAT8_E5M2 = 13
    integer(c_int), parameter :: DSCOMM_BOOL = 14

    ! Operators
    integer(c_int), parameter :: DSCOMM_SUM = 0
    integer(c_int), parameter :: DSCOMM_PRODUCT = 1
    integer(c_int), parameter :: DSCOMM_MIN = 2
    integer(c_int), parameter :: DSCOMM_MAX = 3
    integer(c_int), parameter :: DSCOMM_AVG = 4
    integer(c_int), parameter :: DSCOMM_BAND = 5
    integer(c_int), parameter :: DSCOMM_BOR = 6
    integer(c_int), parameter :: DSCOMM_BXOR = 7
    integer(c_int), parameter :: DSCOMM_PREMUL_SUM = 8

    ! Statuses
    integer(c_int), parameter :: DSCOMM_OK = 0
    integer(c_int), parameter :: DSCOMM_IN_PROGRESS = 1
    integer(c_int), parameter :: DSCOMM_ERR_INVALID = -1
    integer(c_int), parameter :: DSCOMM_ERR_NO_MEMORY = -2
    integer(c_int), parameter :: DSCOMM_ERR_UNSUPPORTED = -3
    integer(c_int), parameter :: DSCOMM_ERR_NO_BACKEND = -4
    integer(c_int), parameter :: DSCOMM_ERR_ENVIRONMENT = -5
    integer(c_int), parameter :: DSCOMM_ERR_TIMEOUT = -6
    integer(c_int), parameter :: DSCOMM_ERR_PEER_FAILED = -7
    integer(c_int), parameter :: DSCOMM_ERR_MISMATCH = -8
    integer(c_int), parameter :: DSCOMM_ERR_ABORTED = -9
    integer(c_int), parameter :: DSCOMM_ERR_TRUNCATED = -10
    integer(c_int), parameter :: DSCOMM_ERR_IO = -11
    integer(c_int), parameter :: DSCOMM_ERR_PROTOCOL = -12
    integer(c_int), parameter :: DSCOMM_ERR_NOT_FOUND = -13
    integer(c_int), parameter :: DSCOMM_ERR_STATE = -14
    integer(c_int), parameter :: DSCOMM_ERR_INTERNAL = -15
    integer(c_int), parameter :: DSCOMM_ERR_CANCELLED = -16

    ! Kinds of failures
    integer(c_int), parameter :: DSCOMM_FAILURE_NONE = 0
    integer(c_int), parameter :: DSCOMM_FAILURE_DIED = 1
    integer(c_int), parameter :: DSCOMM_FAILURE_SILENT = 2
    integer(c_int), parameter :: DSCOMM_FAILURE_MISMATCH = 3
    integer(c_int), parameter :: DSCOMM_FAILURE_ABORTED = 4
    integer(c_int), parameter :: DSCOMM_FAILURE_PROTOCOL = 5
    integer(c_int), parameter :: DSCOMM_FAILURE_RESOURCE = 6
    integer(c_int), parameter :: DSCOMM_FAILURE_LEFT = 7

    ! Time-outs, messages, colours, keys
    integer(c_int), parameter :: DSCOMM_TIMEOUT_DEFAULT = -1
    integer(c_int), parameter :: DSCOMM_TIMEOUT_NONE = -2
    integer(c_int), parameter :: DSCOMM_ANY_SOURCE = -1
    integer(c_int), parameter :: DSCOMM_ANY_TAG = -1
    integer(c_int), parameter :: DSCOMM_NO_COLOR = -1
    integer(c_int), parameter :: DSCOMM_MEM_KEY_BYTES = 64

    ! Handles, each a pointer of C; c_null_ptr is none.
    type, bind(c) :: dscomm_group
        type(c_ptr) :: handle = c_null_ptr
    end type
    type, bind(c) :: dscomm_work
        type(c_ptr) :: handle = c_null_ptr
    end type
    type, bind(c) :: dscomm_store
        type(c_ptr) :: handle = c_null_ptr
    end type
    type, bind(c) :: dscomm_mem
        type(c_ptr) :: handle = c_null_ptr
    end type

    ! What a receive has got; bytes is the length of the message.
    type, bind(c) :: dscomm_message_info
        integer(c_size_t) :: size = 0
        integer(c_int) :: status = 0, source = 0, tag = 0
        integer(c_size_t) :: bytes = 0
    end type

    ! What has ended a group. Texts end with c_null_char.
    type, bind(c) :: dscomm_failure
        integer(c_size_t) :: size = 0
        integer(c_int) :: status = 0, kind = 0, rank = -1, group_rank = -1, coll = -1
        integer(c_int64_t) :: pid = 0, sequence = 0
        character(kind=c_char) :: host(72) = c_null_char
        character(kind=c_char) :: group(184) = c_null_char
        character(kind=c_char) :: detail(512) = c_null_char
    end type

    ! Buffers are addresses, and counts are in elements, as in C.
    interface
        ! Start, end, groups
        function c_init(attr, world) bind(c, name='dscomm_init') result(ret)
            import
            type(c_ptr), value :: attr
            type(dscomm_group), intent(inout) :: world
            integer(c_int) :: ret
        end function
        function c_finalize(world) bind(c, name='dscomm_finalize') result(ret)
            import
            type(c_ptr), value :: world
            integer(c_int) :: ret
        end function
        function c_group_new(parent, ranks, count, attr, group) bind(c, &
            name='dscomm_group_new') result(ret)
            import
            type(c_ptr), value :: parent
            integer(c_int), intent(in) :: ranks(*)
            integer(c_int), value :: count
            type(c_ptr), value :: attr
            type(dscomm_group), intent(inout) :: group
            integer(c_int) :: ret
        end function
        function c_group_split(parent, color, key, attr, group) bind(c, &
            name='dscomm_group_split') result(ret)
            import
            type(c_ptr), value :: parent
            integer(c_int), value :: color, key
            type(c_ptr), value :: attr
            type(dscomm_group), intent(inout) :: group
            integer(c_int) :: ret
        end function
        function c_group_mesh(parent, dims, ndims, groups) bind(c, &
            name='dscomm_group_mesh') result(ret)
            import
            type(c_ptr), value :: parent
            integer(c_int), intent(in) :: dims(*)
            integer(c_int), value :: ndims
            type(dscomm_group), intent(inout) :: groups(*)
            integer(c_int) :: ret
        end function
        function c_group_shrink(group, attr, shrunk) bind(c, &
            name='dscomm_group_shrink') result(ret)
            import
            type(c_ptr), value :: group, attr
            type(dscomm_group), intent(inout) :: shrunk
            integer(c_int) :: ret
        end function
        function c_group_free(group) bind(c, name='dscomm_group_free') result(ret)
            import
            type(c_ptr), value :: group
            integer(c_int) :: ret
        end function
        function c_group_abort(group, reason) bind(c, name='dscomm_group_abort') &
            result(ret)
            import
            type(c_ptr), value :: group
            character(kind=c_char), intent(in) :: reason(*)
            integer(c_int) :: ret
        end function
        function c_group_status(group) bind(c, name='dscomm_group_status') &
            result(ret)
            import
            type(c_ptr), value :: group
            integer(c_int) :: ret
        end function
        function c_group_failure(group, failure) bind(c, name='dscomm_group_failure') &
            result(ret)
            import
            type(c_ptr), value :: group
            type(dscomm_failure), intent(inout) :: failure
            integer(c_int) :: ret
        end function
        function c_group_rank(group) bind(c, name='dscomm_group_rank') result(ret)
            import
            type(c_ptr), value :: group
            integer(c_int) :: ret
        end function
        function c_group_size(group) bind(c, name='dscomm_group_size') result(ret)
            import
            type(c_ptr), value :: group
            integer(c_int) :: ret
        end function
        function c_group_local_rank(group) bind(c, name='dscomm_group_local_rank') &
            result(ret)
            import
            type(c_ptr), value :: group
            integer(c_int) :: ret
        end function
        function c_group_local_size(group) bind(c, name='dscomm_group_local_size') &
            result(ret)
            import
            type(c_ptr), value :: group
            integer(c_int) :: ret
        end function
        function c_group_node_rank(group) bind(c, name='dscomm_group_node_rank') &
            result(ret)
            import
            type(c_ptr), value :: group
            integer(c_int) :: ret
        end function
        function c_group_timeout(group) bind(c, name='dscomm_group_timeout') &
            result(ret)
            import
            type(c_ptr), value :: group
            integer(c_int) :: ret
        end function
        function c_group_name(group) bind(c, name='dscomm_group_name') result(ret)
            import
            type(c_ptr), value :: group
            type(c_ptr) :: ret
        end function
        function c_group_backend(group) bind(c, name='dscomm_group_backend') &
            result(ret)
            import
            type(c_ptr), value :: group
            type(c_ptr) :: ret
        end function
        function c_group_to_global(group, rank, global) bind(c, &
            name='dscomm_group_to_global') result(ret)
            import
            type(c_ptr), value :: group
            integer(c_int), value :: rank
            integer(c_int), intent(out) :: global
            integer(c_int) :: ret
        end function
        function c_group_from_global(group, global, rank) bind(c, &
            name='dscomm_group_from_global') result(ret)
            import
            type(c_ptr), value :: group
            integer(c_int), value :: global
            integer(c_int), intent(out) :: rank
            integer(c_int) :: ret
        end function

        ! Collectives
        function c_broadcast(group, buffer, count, dtype, root, work) bind(c, &
            name='dscomm_broadcast') result(ret)
            import
            type(c_ptr), value :: group, buffer
            integer(c_size_t), value :: count
            integer(c_int), value :: dtype, root
            type(dscomm_work), intent(inout), optional :: work
            integer(c_int) :: ret
        end function
        function c_reduce(group, send, recv, count, dtype, op, root, work) bind(c, &
            name='dscomm_reduce') result(ret)
            import
            type(c_ptr), value :: group, send, recv
            integer(c_size_t), value :: count
            integer(c_int), value :: dtype, op, root
            type(dscomm_work), intent(inout), optional :: work
            integer(c_int) :: ret
        end function
        function c_all_reduce(group, send, recv, count, dtype, op, work) bind(c, &
            name='dscomm_all_reduce') result(ret)
            import
            type(c_ptr), value :: group, send, recv
            integer(c_size_t), value :: count
            integer(c_int), value :: dtype, op
            type(dscomm_work), intent(inout), optional :: work
            integer(c_int) :: ret
        end function
        function c_all_gather(group, send, recv, count, dtype, work) bind(c, &
            name='dscomm_all_gather') result(ret)
            import
            type(c_ptr), value :: group, send, recv
            integer(c_size_t), value :: count
            integer(c_int), value :: dtype
            type(dscomm_work), intent(inout), optional :: work
            integer(c_int) :: ret
        end function
        function c_all_gather_v(group, send, send_count, recv, recv_counts, &
            recv_displs, dtype, work) bind(c, name='dscomm_all_gather_v') result(ret)
            import
            type(c_ptr), value :: group, send
            integer(c_size_t), value :: send_count
            type(c_ptr), value :: recv
            integer(c_size_t), intent(in) :: recv_counts(*)
            integer(c_size_t), intent(in), optional :: recv_displs(*)
            integer(c_int), value :: dtype
            type(dscomm_work), intent(inout), optional :: work
            integer(c_int) :: ret
        end function
        function c_reduce_scatter(group, send, recv, count, dtype, op, work) bind(c, &
            name='dscomm_reduce_scatter') result(ret)
            import
            type(c_ptr), value :: group, send, recv
            integer(c_size_t), value :: count
            integer(c_int), value :: dtype, op
            type(dscomm_work), intent(inout), optional :: work
            integer(c_int) :: ret
        end function
        function c_reduce_scatter_v(group, send, recv, recv_counts, dtype, op, work) &
            bind(c, name='dscomm_reduce_scatter_v') result(ret)
            import
            type(c_ptr), value :: group, send, recv
            integer(c_size_t), intent(in) :: recv_counts(*)
            integer(c_int), value :: dtype, op
            type(dscomm_work), intent(inout), optional :: work
            integer(c_int) :: ret
        end function
        function c_gather(group, send, recv, count, dtype, root, work) bind(c, &
            name='dscomm_gather') result(ret)
            import
            type(c_ptr), value :: group, send, recv
            integer(c_size_t), value :: count
            integer(c_int), value :: dtype, root
            type(dscomm_work), intent(inout), optional :: work
            integer(c_int) :: ret
        end function
        function c_gather_v(group, send, send_count, recv, recv_counts, recv_displs, &
            dtype, root, work) bind(c, name='dscomm_gather_v') result(ret)
            import
            type(c_ptr), value :: group, send
            integer(c_size_t), value :: send_count
            type(c_ptr), value :: recv
            integer(c_size_t), intent(in) :: recv_counts(*)
            integer(c_size_t), intent(in), optional :: recv_displs(*)
            integer(c_int), value :: dtype, root
            type(dscomm_work), intent(inout), optional :: work
            integer(c_int) :: ret
        end function
        function c_scatter(group, send, recv, count, dtype, root, work) bind(c, &
            name='dscomm_scatter') result(ret)
            import
            type(c_ptr), value :: group, send, recv
            integer(c_size_t), value :: count
            integer(c_int), value :: dtype, root
            type(dscomm_work), intent(inout), optional :: work
            integer(c_int) :: ret
        end function
        function c_scatter_v(group, send, send_counts, send_displs, recv, recv_count, &
            dtype, root, work) bind(c, name='dscomm_scatter_v') result(ret)
            import
            type(c_ptr), value :: group, send
            integer(c_size_t), intent(in) :: send_counts(*)
            integer(c_size_t), intent(in), optional :: send_displs(*)
            type(c_ptr), value :: recv
            integer(c_size_t), value :: recv_count
            integer(c_int), value :: dtype, root
            type(dscomm_work), intent(inout), optional :: work
            integer(c_int) :: ret
        end function
        function c_all_to_all(group, send, recv, count, dtype, work) bind(c, &
            name='dscomm_all_to_all') result(ret)
            import
            type(c_ptr), value :: group, send, recv
            integer(c_size_t), value :: count
            integer(c_int), value :: dtype
            type(dscomm_work), intent(inout), optional :: work
            integer(c_int) :: ret
        end function
        function c_all_to_all_v(group, send, send_counts, send_displs, recv, &
            recv_counts, recv_displs, dtype, work) bind(c, &
            name='dscomm_all_to_all_v') result(ret)
            import
            type(c_ptr), value :: group, send
            integer(c_size_t), intent(in) :: send_counts(*)
            integer(c_size_t), intent(in), optional :: send_displs(*)
            type(c_ptr), value :: recv
            integer(c_size_t), intent(in) :: recv_counts(*)
            integer(c_size_t), intent(in), optional :: recv_displs(*)
            integer(c_int), value :: dtype
            type(dscomm_work), intent(inout), optional :: work
            integer(c_int) :: ret
        end function
        function c_all_reduce_premul_sum(group, send, recv, count, dtype, factor, &
            work) bind(c, name='dscomm_all_reduce_premul_sum') result(ret)
            import
            type(c_ptr), value :: group, send, recv
            integer(c_size_t), value :: count
            integer(c_int), value :: dtype
            real(c_double), value :: factor
            type(dscomm_work), intent(inout), optional :: work
            integer(c_int) :: ret
        end function
        function c_reduce_premul_sum(group, send, recv, count, dtype, factor, root, &
            work) bind(c, name='dscomm_reduce_premul_sum') result(ret)
            import
            type(c_ptr), value :: group, send, recv
            integer(c_size_t), value :: count
            integer(c_int), value :: dtype
            real(c_double), value :: factor
            integer(c_int), value :: root
            type(dscomm_work), intent(inout), optional :: work
            integer(c_int) :: ret
        end function
        function c_reduce_scatter_premul_sum(group, send, recv, count, dtype, factor, &
            work) bind(c, name='dscomm_reduce_scatter_premul_sum') result(ret)
            import
            type(c_ptr), value :: group, send, recv
            integer(c_size_t), value :: count
            integer(c_int), value :: dtype
            real(c_double), value :: factor
            type(dscomm_work), intent(inout), optional :: work
            integer(c_int) :: ret
        end function
        function c_barrier(group, work) bind(c, name='dscomm_barrier') result(ret)
            import
            type(c_ptr), value :: group
            type(dscomm_work), intent(inout), optional :: work
            integer(c_int) :: ret
        end function
        function c_monitored_barrier(group, timeout_ms) bind(c, &
            name='dscomm_monitored_barrier') result(ret)
            import
            type(c_ptr), value :: group
            integer(c_int), value :: timeout_ms
            integer(c_int) :: ret
        end function

        ! Messages
        function c_send(group, buffer, count, dtype, dest, tag) bind(c, &
            name='dscomm_send') result(ret)
            import
            type(c_ptr), value :: group, buffer
            integer(c_size_t), value :: count
            integer(c_int), value :: dtype, dest, tag
            integer(c_int) :: ret
        end function
        function c_recv(group, buffer, count, dtype, source, tag, got_source, &
            got_bytes) bind(c, name='dscomm_recv') result(ret)
            import
            type(c_ptr), value :: group, buffer
            integer(c_size_t), value :: count
            integer(c_int), value :: dtype, source, tag
            integer(c_int), intent(out), optional :: got_source
            integer(c_size_t), intent(out), optional :: got_bytes
            integer(c_int) :: ret
        end function
        function c_isend(group, buffer, count, dtype, dest, tag, work) bind(c, &
            name='dscomm_isend') result(ret)
            import
            type(c_ptr), value :: group, buffer
            integer(c_size_t), value :: count
            integer(c_int), value :: dtype, dest, tag
            type(dscomm_work), intent(inout) :: work
            integer(c_int) :: ret
        end function
        function c_irecv(group, buffer, count, dtype, source, tag, work) bind(c, &
            name='dscomm_irecv') result(ret)
            import
            type(c_ptr), value :: group, buffer
            integer(c_size_t), value :: count
            integer(c_int), value :: dtype, source, tag
            type(dscomm_work), intent(inout) :: work
            integer(c_int) :: ret
        end function
        function c_recv_within(group, buffer, count, dtype, source, tag, timeout_ms, &
            info) bind(c, name='dscomm_recv_within') result(ret)
            import
            type(c_ptr), value :: group, buffer
            integer(c_size_t), value :: count
            integer(c_int), value :: dtype, source, tag, timeout_ms
            type(dscomm_message_info), intent(inout) :: info
            integer(c_int) :: ret
        end function
        function c_probe(group, source, tag, timeout_ms, info) bind(c, &
            name='dscomm_probe') result(ret)
            import
            type(c_ptr), value :: group
            integer(c_int), value :: source, tag, timeout_ms
            type(dscomm_message_info), intent(inout) :: info
            integer(c_int) :: ret
        end function

        ! Works
        function c_work_wait(work, timeout_ms) bind(c, name='dscomm_work_wait') &
            result(ret)
            import
            type(c_ptr), value :: work
            integer(c_int), value :: timeout_ms
            integer(c_int) :: ret
        end function
        function c_work_test(work) bind(c, name='dscomm_work_test') result(ret)
            import
            type(c_ptr), value :: work
            integer(c_int) :: ret
        end function
        function c_work_wait_all(works, count, timeout_ms) bind(c, &
            name='dscomm_work_wait_all') result(ret)
            import
            type(dscomm_work), intent(in) :: works(*)
            integer(c_size_t), value :: count
            integer(c_int), value :: timeout_ms
            integer(c_int) :: ret
        end function
        function c_work_wait_any(works, count, timeout_ms, index) bind(c, &
            name='dscomm_work_wait_any') result(ret)
            import
            type(dscomm_work), intent(in) :: works(*)
            integer(c_size_t), value :: count
            integer(c_int), value :: timeout_ms
            integer(c_size_t), intent(inout) :: index
            integer(c_int) :: ret
        end function
        subroutine c_work_free(work) bind(c, name='dscomm_work_free')
            import
            type(c_ptr), value :: work
        end subroutine
        function c_work_cancel(work) bind(c, name='dscomm_work_cancel') result(ret)
            import
            type(c_ptr), value :: work
            integer(c_int) :: ret
        end function
        function c_work_set_timeout(work, timeout_ms) bind(c, &
            name='dscomm_work_set_timeout') result(ret)
            import
            type(c_ptr), value :: work
            integer(c_int), value :: timeout_ms
            integer(c_int) :: ret
        end function
        function c_work_received_at(work, index, info) bind(c, &
            name='dscomm_work_received_at') result(ret)
            import
            type(c_ptr), value :: work
            integer(c_size_t), value :: index
            type(dscomm_message_info), intent(inout) :: info
            integer(c_int) :: ret
        end function
        function c_coalesce_begin(group) bind(c, name='dscomm_coalesce_begin') &
            result(ret)
            import
            type(c_ptr), value :: group
            integer(c_int) :: ret
        end function
        function c_coalesce_end(group, work) bind(c, name='dscomm_coalesce_end') &
            result(ret)
            import
            type(c_ptr), value :: group
            type(dscomm_work), intent(inout), optional :: work
            integer(c_int) :: ret
        end function

        ! Memory
        function c_mem_alloc(group, size, memory) bind(c, name='dscomm_mem_alloc') &
            result(ret)
            import
            type(c_ptr), value :: group
            integer(c_size_t), value :: size
            type(c_ptr), intent(out) :: memory
            integer(c_int) :: ret
        end function
        function c_mem_free(group, memory) bind(c, name='dscomm_mem_free') &
            result(ret)
            import
            type(c_ptr), value :: group, memory
            integer(c_int) :: ret
        end function
        function c_mem_register(group, address, bytes, mem) bind(c, &
            name='dscomm_mem_register') result(ret)
            import
            type(c_ptr), value :: group, address
            integer(c_size_t), value :: bytes
            type(dscomm_mem), intent(inout) :: mem
            integer(c_int) :: ret
        end function
        function c_mem_key(mem, key) bind(c, name='dscomm_mem_key') result(ret)
            import
            type(c_ptr), value :: mem
            integer(c_int8_t), intent(out) :: key(*)
            integer(c_int) :: ret
        end function
        function c_mem_deregister(mem) bind(c, name='dscomm_mem_deregister') &
            result(ret)
            import
            type(c_ptr), value :: mem
            integer(c_int) :: ret
        end function
        function c_put(group, data, bytes, key, offset, work) bind(c, &
            name='dscomm_put') result(ret)
            import
            type(c_ptr), value :: group, data
            integer(c_size_t), value :: bytes
            integer(c_int8_t), intent(in) :: key(*)
            integer(c_size_t), value :: offset
            type(dscomm_work), intent(inout), optional :: work
            integer(c_int) :: ret
        end function
        function c_get(group, data, bytes, key, offset, work) bind(c, &
            name='dscomm_get') result(ret)
            import
            type(c_ptr), value :: group, data
            integer(c_size_t), value :: bytes
            integer(c_int8_t), intent(in) :: key(*)
            integer(c_size_t), value :: offset
            type(dscomm_work), intent(inout), optional :: work
            integer(c_int) :: ret
        end function
        function c_signal(group, rank, work) bind(c, name='dscomm_signal') &
            result(ret)
            import
            type(c_ptr), value :: group
            integer(c_int), value :: rank
            type(dscomm_work), intent(inout), optional :: work
            integer(c_int) :: ret
        end function
        function c_signal_wait(group, rank, timeout_ms) bind(c, &
            name='dscomm_signal_wait') result(ret)
            import
            type(c_ptr), value :: group
            integer(c_int), value :: rank, timeout_ms
            integer(c_int) :: ret
        end function

        ! The store
        function c_store_open(url, attr, store) bind(c, name='dscomm_store_open') &
            result(ret)
            import
            character(kind=c_char), intent(in) :: url(*)
            type(c_ptr), value :: attr
            type(dscomm_store), intent(inout) :: store
            integer(c_int) :: ret
        end function
        subroutine c_store_close(store) bind(c, name='dscomm_store_close')
            import
            type(c_ptr), value :: store
        end subroutine
        function c_store_set(store, key, value, size) bind(c, &
            name='dscomm_store_set') result(ret)
            import
            type(c_ptr), value :: store
            character(kind=c_char), intent(in) :: key(*), value(*)
            integer(c_size_t), value :: size
            integer(c_int) :: ret
        end function
        function c_store_get(store, key, timeout_ms, value, size) bind(c, &
            name='dscomm_store_get') result(ret)
            import
            type(c_ptr), value :: store
            character(kind=c_char), intent(in) :: key(*)
            integer(c_int), value :: timeout_ms
            type(c_ptr), intent(out) :: value
            integer(c_size_t), intent(out) :: size
            integer(c_int) :: ret
        end function
        subroutine c_store_free(value) bind(c, name='dscomm_store_free')
            import
            type(c_ptr), value :: value
        end subroutine
        function c_store_add(store, key, delta, sum) bind(c, name='dscomm_store_add') &
            result(ret)
            import
            type(c_ptr), value :: store
            character(kind=c_char), intent(in) :: key(*)
            integer(c_int64_t), value :: delta
            integer(c_int64_t), intent(out) :: sum
            integer(c_int) :: ret
        end function
        function c_store_delete(store, key, deleted) bind(c, &
            name='dscomm_store_delete') result(ret)
            import
            type(c_ptr), value :: store
            character(kind=c_char), intent(in) :: key(*)
            integer(c_int), intent(out) :: deleted
            integer(c_int) :: ret
        end function

        ! What statuses and types are
        function c_last_error() bind(c, name='dscomm_last_error') result(ret)
            import
            type(c_ptr) :: ret
        end function
        function c_strerror(code) bind(c, name='dscomm_strerror') result(ret)
            import
            integer(c_int), value :: code
            type(c_ptr) :: ret
        end function
        function c_dtype_size(dtype) bind(c, name='dscomm_dtype_size') result(ret)
            import
            integer(c_int), value :: dtype
            integer(c_size_t) :: ret
        end function
        function c_version_string() bind(c, name='dscomm_version_string') result(ret)
            import
            type(c_ptr) :: ret
        end function

        ! Of the C library
        function c_strlen(string) bind(c, name='strlen') result(length)
            import
            type(c_ptr), value :: string
            integer(c_size_t) :: length
        end function
    end interface
end module
