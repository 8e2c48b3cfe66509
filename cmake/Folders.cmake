# fermata_library(FOLDER DEPENDS ...): all sources directly in src/FOLDER as fermata_FOLDER.
function(fermata_library folder)
  cmake_parse_arguments(ARG "" "" "DEPENDS" ${ARGN})
  string(REPLACE "/" "_" name ${folder})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${folder}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "/main\\.cpp$")
  if(sources)
    add_library(fermata_${name} STATIC ${sources})
    target_include_directories(fermata_${name} PUBLIC ${CMAKE_SOURCE_DIR}/src)
    target_link_libraries(fermata_${name} PUBLIC ${ARG_DEPENDS} Threads::Threads
                                          PRIVATE fermata_options)
  else()
    add_library(fermata_${name} INTERFACE)
    target_include_directories(fermata_${name} INTERFACE ${CMAKE_SOURCE_DIR}/src)
    target_link_libraries(fermata_${name} INTERFACE ${ARG_DEPENDS})
  endif()
  if(FERMATA_SANITIZE AND sources)
    # Whoever links an instrumented library links the sanitizer.
    target_link_options(fermata_${name} PUBLIC -fsanitize=${FERMATA_SANITIZE})
  endif()
endfunction()

# fermata_tests(NAME DIRECTORY DEPENDS ...): all sources directly in DIRECTORY as one binary.
function(fermata_tests name directory)
  cmake_parse_arguments(ARG "" "" "DEPENDS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${directory}/*.cpp)
  if(NOT sources)
    return()
  endif()
  add_executable(${name} ${sources})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/tests)
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS} GTest::gtest GTest::gtest_main
                                        rapidcheck fermata_options)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  target_compile_definitions(${name} PRIVATE
    FERMATA_SOURCE_DIR="${CMAKE_SOURCE_DIR}" FERMATA_BINARY_DIR="${CMAKE_BINARY_DIR}")
  add_test(NAME ${name} COMMAND ${name} WORKING_DIRECTORY ${CMAKE_BINARY_DIR})
  set_tests_properties(${name} PROPERTIES TIMEOUT 900)
endfunction()
