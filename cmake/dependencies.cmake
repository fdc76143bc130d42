# SPDX-License-Identifier: Apache-2.0
# Third-party parts, all from Debian's packages.
find_package(Threads REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(Boost 1.81 REQUIRED)
find_package(fmt REQUIRED)
find_package(CLI11 REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(nlohmann_json REQUIRED)
find_library(BATON_SIMDJSON simdjson REQUIRED)
find_library(BATON_PCRE2 pcre2-8 REQUIRED)
find_library(BATON_UTF8PROC utf8proc REQUIRED)
find_library(BATON_ZMQ zmq REQUIRED)  # with cppzmq, which is headers only

# Debian ships llhttp as C sources inside node-llhttp.
set(LLHTTP_ROOT /usr/share/llhttp CACHE PATH "Folder with llhttp's C sources")
set(LLHTTP_INCLUDE /usr/share/include/llhttp CACHE PATH "Folder with llhttp.h")
add_library(llhttp STATIC ${LLHTTP_ROOT}/api.c ${LLHTTP_ROOT}/http.c ${LLHTTP_ROOT}/llhttp.c)
target_include_directories(llhttp SYSTEM PUBLIC ${LLHTTP_INCLUDE})
target_compile_options(llhttp PRIVATE -w)
set_target_properties(llhttp PROPERTIES UNITY_BUILD OFF)

# Asio is compiled once, in core/asio.cc.
add_library(baton_asio INTERFACE)
target_compile_definitions(baton_asio INTERFACE
  BOOST_ASIO_SEPARATE_COMPILATION BOOST_ASIO_NO_DEPRECATED BOOST_ASIO_NO_TS_EXECUTORS)
target_link_libraries(baton_asio INTERFACE Boost::headers OpenSSL::SSL OpenSSL::Crypto Threads::Threads)
