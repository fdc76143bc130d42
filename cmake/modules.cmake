# SPDX-License-Identifier: Apache-2.0

# Templates of libraries that all modules need.
add_library(baton_compiled_once STATIC ${PROJECT_SOURCE_DIR}/cmake/compiled_once.cc)
target_link_libraries(baton_compiled_once PUBLIC fmt::fmt PRIVATE baton_flags)

# baton_module(NAME SOURCES a.cc … LINK other_module …): one static library per folder of src/.
# ASIO: the module uses Asio.
function(baton_module name)
  cmake_parse_arguments(ARG "ASIO" "" "SOURCES;LINK" ${ARGN})
  add_library(baton_${name} STATIC ${ARG_SOURCES})
  target_include_directories(baton_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(baton_${name} PUBLIC ${ARG_LINK} fmt::fmt PRIVATE baton_flags)
  if(ARG_ASIO)
    target_link_libraries(baton_${name} PUBLIC baton_asio_impl)
    baton_precompile_headers(baton_${name} ASIO)
  else()
    baton_precompile_headers(baton_${name})
  endif()
endfunction()

# baton_embed(NAME NAMESPACE NS FUNCTION FILE ...): `std::string_view FUNCTION()` in NS is the text of FILE, put into the module
# when it is built. The functions are declared by hand.
function(baton_embed name)
  cmake_parse_arguments(ARG "" "NAMESPACE" "" ${ARGN})
  set(pairs ${ARG_UNPARSED_ARGUMENTS})
  while(pairs)
    list(POP_FRONT pairs function file)
    set(output ${CMAKE_CURRENT_BINARY_DIR}/${function}.cc)
    set(script ${PROJECT_SOURCE_DIR}/cmake/embed.cmake)
    add_custom_command(OUTPUT ${output}
      COMMAND ${CMAKE_COMMAND} -DINPUT=${CMAKE_CURRENT_SOURCE_DIR}/${file} -DOUTPUT=${output} -DNAMESPACE=${ARG_NAMESPACE}
        -DFUNCTION=${function} -P ${script}
      DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${file} ${script} VERBATIM)
    target_sources(baton_${name} PRIVATE ${output})
  endwhile()
endfunction()

# baton_precompile_headers(TARGET [ASIO] [TEST] [EXHAUSTIVE]): foreign headers cost more than most of our files do; they are parsed once
# for each kind of target and shared. Never our own: a change of one would compile everything again.
# TEST: the target is a test, which nobody waits for; to optimise tests, and what sanitizers add to them, took most of a build.
# EXHAUSTIVE: one that tries so much that it is optimised nevertheless.
# compiled_once.h comes last, and what it declares is in baton_compiled_once.
# Every file still includes what it uses; -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON shows whether it does.
function(baton_precompile_headers target)
  cmake_parse_arguments(ARG "ASIO;TEST;EXHAUSTIVE" "" "" ${ARGN})
  set(kind baton_headers)
  set(options)
  # What nearly all of ours include, and JSON, which is dear.
  set(headers <algorithm> <array> <atomic> <charconv> <chrono> <expected> <filesystem> <fstream> <functional> <map> <memory>
    <mutex> <optional> <random> <set> <span> <sstream> <string> <string_view> <thread> <unordered_map> <utility> <vector>
    <fmt/format.h> <nlohmann/json.hpp> <simdjson.h>)
  set(libraries fmt::fmt)
  if(ARG_ASIO)
    string(APPEND kind _asio)
    list(APPEND headers <boost/asio/as_tuple.hpp> <boost/asio/awaitable.hpp> <boost/asio/co_spawn.hpp>
      <boost/asio/io_context.hpp> <boost/asio/ip/tcp.hpp> <boost/asio/post.hpp> <boost/asio/read.hpp>
      <boost/asio/signal_set.hpp> <boost/asio/ssl.hpp> <boost/asio/steady_timer.hpp> <boost/asio/use_awaitable.hpp>
      <boost/asio/write.hpp>)
    list(APPEND libraries baton_asio)
  endif()
  if(ARG_TEST)
    string(APPEND kind _test)
    list(APPEND headers <gmock/gmock.h> <gtest/gtest.h>)
    list(APPEND libraries GTest::gmock)
    if(ARG_EXHAUSTIVE)
      string(APPEND kind _exhaustive)
    else()
      set(options -O0)
    endif()
  endif()
  if(NOT TARGET ${kind})
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/${kind}.cc CONTENT "")
    add_library(${kind} STATIC ${PROJECT_BINARY_DIR}/${kind}.cc)
    target_link_libraries(${kind} PUBLIC ${libraries} PRIVATE baton_flags)
    target_precompile_headers(${kind} PRIVATE ${headers} ${PROJECT_SOURCE_DIR}/cmake/compiled_once.h)
    target_compile_options(${kind} PRIVATE ${options})
  endif()
  target_precompile_headers(${target} REUSE_FROM ${kind})
  target_link_libraries(${target} PRIVATE baton_compiled_once)
  target_compile_options(${target} PRIVATE ${options})
endfunction()
