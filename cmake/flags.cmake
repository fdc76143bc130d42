# SPDX-License-Identifier: Apache-2.0
# The one set of compile flags. Every target of ours links `baton_flags`; sanitizers and optimisation come from the preset.
add_library(baton_flags INTERFACE)
target_compile_options(baton_flags INTERFACE
  -Wall -Wextra -Wconversion -Wshadow -Wnon-virtual-dtor -Wthread-safety -Werror -fno-omit-frame-pointer)

set(BATON_SANITIZE "" CACHE STRING "Sanitizers to build everything with, as -fsanitize= takes them")
if(BATON_SANITIZE)
  # The check of virtual pointers opens a pipe to see whether memory can be read, and calls an object unsound where there is no
  # descriptor left, which is what some tests are about. The check of object sizes finds what the address sanitizer finds too, and
  # costs 15 % of the compile time.
  add_compile_options(-fsanitize=${BATON_SANITIZE} -fno-sanitize=vptr,object-size -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${BATON_SANITIZE})
endif()

find_program(BATON_MOLD mold)
if(BATON_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

find_program(BATON_CCACHE ccache)
if(BATON_CCACHE)
  # Precompiled headers defeat ccache unless time stamps are left out of them. Paths count from the sources' root; still, what
  # uses precompiled headers, nearly everything, is not shared between clones and worktrees.
  set(CMAKE_C_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${BATON_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_C_COMPILER_LAUNCHER})
endif()
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:SHELL:-Xclang\ -fno-pch-timestamp>)
