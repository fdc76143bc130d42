# SPDX-License-Identifier: Apache-2.0

# baton_module(NAME SOURCES a.cc … LINK other_module …): one static library per folder of src/.
# ASIO: the module uses Asio, and shares the precompiled Asio headers.
function(baton_module name)
  cmake_parse_arguments(ARG "ASIO" "" "SOURCES;LINK" ${ARGN})
  add_library(baton_${name} STATIC ${ARG_SOURCES})
  target_include_directories(baton_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(baton_${name} PUBLIC ${ARG_LINK} fmt::fmt PRIVATE baton_flags)
  if(ARG_ASIO)
    target_link_libraries(baton_${name} PUBLIC baton_asio_impl)
    baton_use_asio_pch(baton_${name})
  endif()
endfunction()

# The Asio headers cost seconds per file; they are parsed once and shared.
function(baton_use_asio_pch target)
  if(NOT TARGET baton_asio_pch)
    file(WRITE ${PROJECT_BINARY_DIR}/asio_pch.cc "")
    add_library(baton_asio_pch STATIC ${PROJECT_BINARY_DIR}/asio_pch.cc)
    target_link_libraries(baton_asio_pch PUBLIC baton_asio fmt::fmt PRIVATE baton_flags)
    target_precompile_headers(baton_asio_pch PRIVATE
      <boost/asio/awaitable.hpp> <boost/asio/co_spawn.hpp> <boost/asio/io_context.hpp>
      <boost/asio/ip/tcp.hpp> <boost/asio/read.hpp> <boost/asio/write.hpp> <boost/asio/ssl.hpp>
      <boost/asio/steady_timer.hpp> <boost/asio/use_awaitable.hpp> <boost/asio/as_tuple.hpp>
      <boost/asio/post.hpp> <boost/asio/signal_set.hpp>
      <expected> <functional> <map> <memory> <string> <string_view> <vector> <fmt/format.h>)
  endif()
  target_precompile_headers(${target} REUSE_FROM baton_asio_pch)
endfunction()
