# SPDX-License-Identifier: Apache-2.0
# A header compiles by itself if a source file can begin with it. Most have a source file of their name that does
# (tests/lint/check_pairs.py); this target compiles the others, each as the only line of a file.
find_package(GTest REQUIRED)
file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}
  ${PROJECT_SOURCE_DIR}/src/*.h ${PROJECT_SOURCE_DIR}/tests/*.h ${PROJECT_SOURCE_DIR}/bench/*.h)
list(FILTER headers EXCLUDE REGEX /node_modules/)
set(sources)
foreach(header IN LISTS headers)
  string(REGEX REPLACE "\\.h$" ".cc" source ${header})
  if(NOT EXISTS ${PROJECT_SOURCE_DIR}/${source})
    set(alone ${PROJECT_BINARY_DIR}/headers/${source})
    file(CONFIGURE OUTPUT ${alone} CONTENT "#include \"${PROJECT_SOURCE_DIR}/${header}\"\n")
    list(APPEND sources ${alone})
  endif()
endforeach()
add_library(baton_headers_alone OBJECT ${sources})
target_include_directories(baton_headers_alone PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/tests)
target_link_libraries(baton_headers_alone PRIVATE baton_flags baton_asio llhttp fmt::fmt GTest::gmock)
