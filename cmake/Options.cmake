# How our own code is compiled. Third-party headers are system headers: no warnings from them.
option(FERMATA_WERROR "Warnings are errors" ON)
option(FERMATA_TESTS "Build the test binaries too (they need more packages)" ON)
option(FERMATA_FUZZ "Build the fuzz targets (needs clang; see tools/fuzz)" OFF)
set(FERMATA_SANITIZE "" CACHE STRING
    "Empty, or a list for -fsanitize= (address,undefined or thread)")
set(FERMATA_LIBLLAMA "prebuilt" CACHE STRING
    "prebuilt: the pinned release; system: find_package(llama)")

add_library(fermata_options INTERFACE)
target_compile_definitions(fermata_options INTERFACE FERMATA_VERSION="${PROJECT_VERSION}")
target_compile_options(fermata_options INTERFACE -Wall -Wextra -Wpedantic -fno-omit-frame-pointer)
if(FERMATA_WERROR)
  target_compile_options(fermata_options INTERFACE -Werror)
endif()
if(FERMATA_FUZZ)
  set(FERMATA_SANITIZE fuzzer-no-link,address,undefined)
endif()
if(FERMATA_SANITIZE)
  # -O1 -g1: a third less to compile, and reports still name functions and lines.
  target_compile_options(fermata_options INTERFACE -fsanitize=${FERMATA_SANITIZE} -O1 -g1
                                                   -fno-sanitize-recover=all)
  target_link_options(fermata_options INTERFACE -fsanitize=${FERMATA_SANITIZE})
  # GCC warns about uninitialised values inside its own headers once sanitizers are on.
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    target_compile_options(fermata_options INTERFACE -Wno-maybe-uninitialized)
  endif()
endif()
if(FERMATA_SANITIZE MATCHES "undefined")
  # Its check of types opens a pipe: without free descriptors every object looks wrong to it.
  target_compile_options(fermata_options INTERFACE -fno-sanitize=vptr)
endif()
if(FERMATA_SANITIZE MATCHES "thread")
  # Boost's fences are not understood by the thread sanitizer; Asio does not rely on them here.
  target_compile_options(fermata_options INTERFACE -Wno-tsan)
endif()

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()
find_program(MOLD mold)
if(MOLD)
  target_link_options(fermata_options INTERFACE -fuse-ld=mold)
endif()
