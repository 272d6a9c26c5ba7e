! SPDX-License-Identifier: BSD-3-Clause
! Arguments: addresses and lengths of buffers, strings, statuses; and the functions
! without a group.
module dscomm_arguments
    use, intrinsic :: iso_fortran_env, only: error_unit
    use dscomm_c
    implicit none

contains

    ! The status of a call becomes ierror; a failure without ierror ends the program.
    subroutine finish(status, ierror)
        integer(c_int), intent(in) :: status
        integer, intent(out), optional :: ierror

        if (present(ierror)) then
            ierror = status
        else if (status < 0) then
            write (error_unit, '(a)') dscomm_last_error()
            error stop 1
        end if
    end subroutine

    subroutine finish_work(status, done, ierror)
        integer(c_int), intent(in) :: status
        logical, intent(out), optional :: done
        integer, intent(out), optional :: ierror

        if (present(done)) done = status /= DSCOMM_IN_PROGRESS
        call finish(status, ierror)
    end subroutine

    ! The address of a buffer; NULL if it is not contiguous or has fewer elements.
    function address(buffer, needed) result(pointer)
        type(*), dimension(..), target, asynchronous :: buffer
        integer(c_size_t), intent(in), optional :: needed
        type(c_ptr) :: pointer

        pointer = c_null_ptr
        if (.not. is_contiguous(buffer)) return
        if (present(needed)) then
            if (elements(buffer) < needed) return
        end if
        pointer = c_loc(buffer)
    end function

    function elements(buffer) result(count)
        type(*), dimension(..), intent(in) :: buffer
        integer(c_size_t) :: count

        count = size(buffer, kind=c_size_t)
    end function

    function ranks(group) result(count)
        type(dscomm_group), intent(in) :: group
        integer(c_size_t) :: count

        count = max(1, c_group_size(group%handle))
    end function

    ! Elements that this rank needs if only root needs them
    function on(group, root, count) result(needed)
        type(dscomm_group), intent(in) :: group
        integer(c_int), intent(in) :: root
        integer(c_size_t), intent(in) :: count
        integer(c_size_t) :: needed

        needed = merge(count, 0_c_size_t, c_group_rank(group%handle) == root)
    end function

    function deadline(timeout_ms) result(time)
        integer(c_int), intent(in), optional :: timeout_ms
        integer(c_int) :: time

        time = DSCOMM_TIMEOUT_DEFAULT
        if (present(timeout_ms)) time = timeout_ms
    end function

    ! Without trailing blanks
    function c_string(string) result(terminated)
        character(*), intent(in) :: string
        character(:, kind=c_char), allocatable :: terminated

        terminated = trim(string) // c_null_char
    end function

    ! A copy of bytes
    function text(bytes, size) result(string)
        type(c_ptr), intent(in) :: bytes
        integer(c_size_t), intent(in) :: size
        character(:), allocatable :: string
        character(kind=c_char), pointer :: characters(:)
        integer(c_size_t) :: i

        allocate (character(size) :: string)
        call c_f_pointer(bytes, characters, [size])
        do i = 1, size
            string(i:i) = characters(i)
        end do
    end function

    ! A copy of a string of C
    function c_text(string) result(copy)
        type(c_ptr), intent(in) :: string
        character(:), allocatable :: copy

        copy = text(string, c_strlen(string))
    end function

    function dscomm_last_error() result(sentence)
        character(:), allocatable :: sentence

        sentence = c_text(c_last_error())
    end function

    function dscomm_strerror(status) result(words)
        integer, intent(in) :: status
        character(:), allocatable :: words

        words = c_text(c_strerror(int(status, c_int)))
    end function

    function dscomm_version_string() result(version)
        character(:), allocatable :: version

        version = c_text(c_version_string())
    end function

    function dscomm_dtype_size(dtype) result(bytes)
        integer(c_int), intent(in) :: dtype
        integer(c_size_t) :: bytes

        bytes = c_dtype_size(dtype)
    end function
end module
