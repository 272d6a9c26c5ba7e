# SPDX-License-Identifier: BSD-3-Clause
# DSCOMM_CAIRO: cairo, with which the program dscomm draws pictures (enable_tools).
# Sets have_cairo, dscomm_cairo, CAIRO_CFLAGS, CAIRO_LIBS.
AC_DEFUN([DSCOMM_CAIRO],
[DSCOMM_ARG_WITH([cairo], [pictures as PNG and SVG], [lib/pkgconfig/cairo.pc])
AC_ARG_VAR([CAIRO_CFLAGS], [flags for cairo, with CAIRO_LIBS])
AC_ARG_VAR([CAIRO_LIBS], [cairo, in place of a search])
dscomm_cairo_found=
dscomm_cairo_why=
AS_IF([test "$with_cairo" != no], [
    AC_MSG_CHECKING([for cairo])
    dscomm_version=
    AS_IF([test -z "$CAIRO_LIBS"],
        [DSCOMM_FIND_PC([cairo], [CAIRO], [cairo])])
    DSCOMM_TRY_LINK([CAIRO], [@%:@include <cairo-svg.h>],
        [cairo_surface_write_to_png_stream(
             cairo_svg_surface_create_for_stream(0, 0, 1, 1), 0, 0);],
        [dscomm_cairo_found="cairo${dscomm_version:+ $dscomm_version}"])
    DSCOMM_EXPLAIN([cairo], [CAIRO], [no cairo.pc])
    AS_IF([test "$enable_tools" = no],
        [dscomm_cairo_found= dscomm_cairo_why="only the program dscomm draws, and --disable-tools leaves it out"])
    AC_MSG_RESULT([${dscomm_cairo_found:-no}])
])
DSCOMM_DECIDE([cairo], [tools/common/canvas.c])
AM_CONDITIONAL([HAVE_CAIRO], [test "$have_cairo" = yes])
])
