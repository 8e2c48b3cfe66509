# Target `libllama`: llama.h, libllama-common and the ggml libraries, either the pinned prebuilt
# release that `make setup` unpacks, or an installed one.
set(FERMATA_LIBLLAMA_VERSION "0.4.0")
add_library(libllama INTERFACE)
if(FERMATA_LIBLLAMA STREQUAL "system")
  find_package(llama REQUIRED)
  target_link_libraries(libllama INTERFACE llama llama-common)
else()
  set(FERMATA_LIBLLAMA_DIR "" CACHE PATH
    "Unpacked release, include/ and lib/: the folder that tools/setup/libllama.sh prints")
  if(NOT EXISTS ${FERMATA_LIBLLAMA_DIR}/include/llama.h)
    message(FATAL_ERROR "libllama is not set up in '${FERMATA_LIBLLAMA_DIR}'; run: make setup")
  endif()
  set(lib ${FERMATA_LIBLLAMA_DIR}/lib)
  target_include_directories(libllama SYSTEM INTERFACE ${FERMATA_LIBLLAMA_DIR}/include)
  target_link_libraries(libllama INTERFACE
    ${lib}/libllama-common.so ${lib}/libllama.v0.4.0.so ${lib}/libggml.v0.4.0.so
    ${lib}/libggml-base.so)
  target_link_options(libllama INTERFACE -Wl,-rpath,${lib} -Wl,--disable-new-dtags)
  target_compile_definitions(libllama INTERFACE FERMATA_LIBLLAMA_LIB_DIR="${lib}")
endif()
target_compile_definitions(libllama INTERFACE
  FERMATA_LIBLLAMA_VERSION="${FERMATA_LIBLLAMA_VERSION}")
