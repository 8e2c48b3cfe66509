# Everything here is a Debian 12 package; `make setup` installs them (tools/setup/packages.txt).
find_package(Threads REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(spdlog REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(prometheus-cpp REQUIRED)
find_package(Boost 1.81 REQUIRED)

# Under a sanitizer spdlog's threads and locks have to be instrumented like ours.
set(FERMATA_SPDLOG spdlog::spdlog)
if(FERMATA_SANITIZE)
  set(FERMATA_SPDLOG spdlog::spdlog_header_only)
endif()

find_library(XXHASH_LIBRARY xxhash REQUIRED)
add_library(xxhash INTERFACE)
target_link_libraries(xxhash INTERFACE ${XXHASH_LIBRARY})

if(FERMATA_TESTS)
  find_package(GTest REQUIRED)
  find_package(benchmark REQUIRED)
  find_path(RAPIDCHECK_INCLUDE rapidcheck.h REQUIRED)
  find_library(RAPIDCHECK_LIBRARY rapidcheck REQUIRED)
  add_library(rapidcheck INTERFACE)
  target_include_directories(rapidcheck SYSTEM INTERFACE ${RAPIDCHECK_INCLUDE})
  target_link_libraries(rapidcheck INTERFACE ${RAPIDCHECK_LIBRARY})
endif()
