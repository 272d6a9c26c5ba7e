#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# configure --with-PART=DIR takes the part from DIR and from nowhere else; a DIR
# without it is refused, by its name and with what was looked for. So are options that
# make no sense.

. "$abs_top_srcdir/tests/tap.sh"

unset MPI_CFLAGS MPI_LIBS IBVERBS_CFLAGS IBVERBS_LIBS CAIRO_CFLAGS CAIRO_LIBS
unset HWLOC_CFLAGS HWLOC_LIBS NVCC NVCCFLAGS CONFIG_SITE

# A source folder of its own: configure refuses one in which it was run before,
# and parts whose sources are yet to come are to be looked for too.
mkdir -p "$scratch/source/build" "$scratch/source/compression/cuda" \
    "$scratch/source/tools/common" "$scratch/source/env" \
    "$scratch/source/backends/mpi" "$scratch/source/backends/net/ibverbs"
cd "$scratch/source" || exit 99
ln -s "$abs_top_srcdir/configure" "$abs_top_srcdir/build-aux" \
    "$abs_top_srcdir/lib" .
: >compression/cuda/cuda.c
: >backends/mpi/mpi.c
: >backends/net/ibverbs/ibverbs.c
: >tools/common/canvas.c
: >env/topology.c
cd build || exit 99

# configures OPTION...: its end
configures()
{
    ../configure -q -C --no-create CC="$CC" --with-mpi=no --with-ibverbs=no \
        --with-cuda=no --with-cairo=no "$@" 2>&1
}

# library FILE FUNCTION...
library()
{
    file=$1
    shift
    mkdir -p "${file%/*}"
    for function; do
        echo "int $function(void); int $function(void) { return 0; }"
    done >"$scratch/x.c"
    # CC may hold flags.
    # shellcheck disable=SC2086
    $CC -shared -fPIC -o "$file" "$scratch/x.c"
}

# program FILE TEXT: one that prints TEXT
program()
{
    mkdir -p "${1%/*}"
    printf '#!/bin/sh\necho "%s"\n' "$2" >"$1"
    chmod +x "$1"
}

verbs=$scratch/verbs
mkdir -p "$verbs/include/infiniband"
cat >"$verbs/include/infiniband/verbs.h" <<'END'
#include <stddef.h>
void *ibv_get_device_list(int *);
END
library "$verbs/lib64/libibverbs.so" ibv_get_device_list

mpi=$scratch/mpi
mkdir -p "$mpi/include"
cat >"$mpi/include/mpi.h" <<'END'
#define MPICH_VERSION "98.7"
int MPI_Initialized(int *);
END
library "$mpi/lib/libmpi.so" MPI_Initialized

cuda=$scratch/cuda
mkdir -p "$cuda/include"
: >"$cuda/include/cuda_runtime.h"
mkdir -p "$cuda/bin"
cat >"$cuda/bin/nvcc" <<'END'
#!/bin/sh
case $* in
*--version*) echo 'Cuda tools, release 98.7, V98.7.6' ;;
*--list-gpu-arch*) printf 'compute_75\ncompute_90\n' ;;
*) echo 'void dscomm_launch(void) {}' | cc -x c -c -o conftest_cuda.o - ;;
esac
END
chmod +x "$cuda/bin/nvcc"
library "$cuda/lib64/libcudart_static.a" cudart
# The C++ library, which not everybody has
library "$cuda/lib64/libstdc++.so" stdcxx

end=$(configures --with-mpi="$mpi" --with-ibverbs="$verbs" --with-cuda="$cuda")
like "$end" "mpi +yes \(MPICH 98\.7 in $mpi\)" 'mpi: files'
like "$end" "ibverbs +yes \(libibverbs in $verbs\)" 'ibverbs: files'
like "$end" "cuda +yes \(CUDA 98\.7 in $cuda\)" 'cuda: files'

program "$scratch/wrapper/bin/mpicc" "cc -I$mpi/include -L$mpi/lib -lmpi"
mkdir -p "$scratch/package/lib/pkgconfig"
cat >"$scratch/package/lib/pkgconfig/libibverbs.pc" <<END
Name: libibverbs
Description: a fake
Version: 98.7
Libs: -L$verbs/lib64 -libverbs
Cflags: -I$verbs/include
END
end=$(configures --with-mpi="$scratch/wrapper" --with-ibverbs="$scratch/package")
like "$end" "mpi +yes \(MPICH 98\.7 in $scratch/wrapper\)" 'mpi: mpicc'
like "$end" "yes \(libibverbs 98\.7 in $scratch/package\)" 'ibverbs: pkg-config'

# fake_cairo DIR FUNCTION...: a cairo that has these functions
fake_cairo()
{
    folder=$1
    mkdir -p "$folder/include" "$folder/lib/pkgconfig"
    cat >"$folder/include/cairo-svg.h" <<'END'
void *cairo_svg_surface_create_for_stream(void *, void *, double, double);
int cairo_surface_write_to_png_stream(void *, void *, void *);
END
    cat >"$folder/lib/pkgconfig/cairo.pc" <<END
Name: cairo
Description: a fake
Version: 98.7
Libs: -L$folder/lib -lcairo
Cflags: -I$folder/include
END
    shift
    library "$folder/lib/libcairo.so" "$@"
}
svg=cairo_svg_surface_create_for_stream
fake_cairo "$scratch/cairo" $svg cairo_surface_write_to_png_stream
fake_cairo "$scratch/part" $svg
end=$(configures --with-cairo="$scratch/cairo")
like "$end" "pictures +yes \(cairo 98\.7 in $scratch/cairo\)" 'cairo: pkg-config'
like "$(configures)" 'pictures +no \(--with-cairo=no\)' 'cairo: left out'

# fake_hwloc DIR VERSION
fake_hwloc()
{
    mkdir -p "$1/include" "$1/lib/pkgconfig"
    echo 'typedef void *hwloc_topology_t; int hwloc_topology_init(hwloc_topology_t *);' \
        >"$1/include/hwloc.h"
    cat >"$1/lib/pkgconfig/hwloc.pc" <<END
Name: hwloc
Description: a fake
Version: $2
Libs: -L$1/lib -lhwloc
Cflags: -I$1/include
END
    library "$1/lib/libhwloc.so" hwloc_topology_init
}
fake_hwloc "$scratch/hwloc" 98.7
fake_hwloc "$scratch/old-hwloc" 2.1.9
like "$(configures --with-hwloc="$scratch/hwloc")" \
    "topology +yes \(hwloc 98\.7 in $scratch/hwloc\)" 'hwloc: pkg-config'
like "$(configures --without-hwloc --disable-tools)" 'topology +no \(--with-hwloc=no\)' \
    'hwloc: left out'
like "$(configures --without-hwloc)" \
    'error: hwloc 2\.2 .*--with-hwloc=no.*the program dscomm needs it' 'hwloc: needed'

# wrapper DIR FOLDER: an mpicc like that of Intel MPI
wrapper()
{
    mkdir -p "$1/bin"
    cat >"$1/bin/mpicc" <<END
#!/bin/sh
echo 'cc -I"$2/include" -L"$2/lib" -Xlinker "$2" -lmpi'
END
    chmod +x "$1/bin/mpicc"
}
wrapper "$scratch/quotes" "$mpi"
end=$(configures --with-mpi="$scratch/quotes")
like "$end" "mpi +yes \(MPICH 98\.7 in $scratch/quotes\)" 'mpi: mpicc that quotes'
wrapper "$mpi" "$scratch/nowhere"
end=$(configures --with-mpi="$mpi")
like "$end" "mpi +yes \(MPICH 98\.7 in $mpi\)" 'mpi: files beside an mpicc of no use'

# refuses NAME DIR WHAT TEXT
refuses()
{
    like "$(configures --with-"$1=$2")" "error: --with-$1=$2: .*$3" "$4"
}
refuses mpi "$verbs" 'mpicc.*mpi\.h.* in '"$verbs" 'mpi: not there'
refuses ibverbs "$mpi" 'libibverbs\.pc.*verbs\.h.* in '"$mpi" 'ibverbs: not there'
refuses cuda "$mpi" "bin/nvcc in $mpi" 'cuda: not there'
refuses cairo "$mpi" "no cairo\.pc in $mpi" 'cairo: not there'
refuses hwloc "$mpi" "no hwloc\.pc of 2\.2 or newer in $mpi" 'hwloc: not there'
refuses hwloc "$scratch/old-hwloc" 'no hwloc\.pc of 2\.2 or newer' 'hwloc: too old'
refuses cairo "$scratch/part" 'no program links with' 'cairo: without PNG'
like "$(configures --with-cuda="$cuda" --with-cuda-arch='90a 33')" \
    "error: --with-cuda=$cuda: .*nvcc knows no 33, but 75 90" 'cuda: no such device'
for list in banana '80 fast' 9a0 '' yes; do
    like "$(configures --with-cuda-arch="$list")" \
        "error: --with-cuda-arch=$list: give numbers" "cuda: no device is named '$list'"
done
mkdir -p "$scratch/left/bin"
printf '#!/bin/sh\nexit 1\n' >"$scratch/left/bin/nvcc"
chmod +x "$scratch/left/bin/nvcc"
refuses cuda "$scratch/left" 'bin/nvcc does not run' 'cuda: a wrapper that was left'
rm "$cuda/include/cuda_runtime.h"
refuses cuda "$cuda" "cuda_runtime\.h.* in $cuda" 'cuda: no runtime'
refuses mpi "$scratch/nowhere" 'no such folder.*mpicc' 'no such folder'
refuses backenddir relative 'give an absolute path' 'modules in a folder relative to none'
like "$(configures --with-backenddir="$scratch")" "modules in +$scratch\$" \
    'modules elsewhere'
configures --with-url=https://dscomm.example --with-bugurl=https://bugs.example \
    >/dev/null
./config.status -q --file="$scratch/x.pc:$abs_top_srcdir/dscomm.pc.in"
like "$(cat "$scratch/x.pc")" '^URL: https://dscomm\.example$' 'a home page'
like "$(cat "$scratch/x.pc")" '^bugurl=https://bugs\.example$' 'where defects are reported'

# Parts that are left out, without what only they need
# lacks PATTERN: a pkg-config that does not find what matches
lacks()
{
    cat >"$scratch/pkg-config" <<END
#!/bin/sh
case \$* in $1) exit 1 ;; esac
exec "$PKG_CONFIG" "\$@"
END
    chmod +x "$scratch/pkg-config"
}
lacks '*json-glib* | *hwloc*'
end=$(configures --cache-file=/dev/null --disable-tools --disable-manual \
    PKG_CONFIG="$scratch/pkg-config")
like "$end" '^  manual +no$' '--disable-manual'
like "$end" '^  tools +no$' '--disable-tools needs neither JSON-GLib nor hwloc'
like "$end" '^  tests +no$' 'without the tools there are no tests'
lacks '*hwloc*'
like "$(configures --cache-file=/dev/null PKG_CONFIG="$scratch/pkg-config")" \
    'error: hwloc 2\.2 .*libhwloc-dev.*--disable-tools' 'no hwloc'
like "$(configures --disable-tests)" '^  tests +no$' '--disable-tests'
like "$(configures --disable-tools --enable-tests)" \
    'error: --enable-tests: the tests need the program dscomm' 'tests without tools'
like "$(configures --cache-file=/dev/null CPPFLAGS="$(printf -- '-U__%s_ATOMIC_LLONG_LOCK_FREE ' GCC CLANG
    printf -- '-D__%s_ATOMIC_LLONG_LOCK_FREE=1 ' GCC CLANG)")" \
    'error: .* 64-bit atomic instructions.*CFLAGS=-march' 'a processor without 64-bit atomics'
for option in --disable-shared --enable-static; do
    like "$(configures $option)" "error: $option: backends are modules, " $option
done
tap_done
