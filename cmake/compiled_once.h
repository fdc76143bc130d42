// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
//
// Ends every precompiled header; no file includes it. Templates that each of our files would compile
// again, although all need the same: this one, with all that formats numbers and text, was a quarter of
// the compile time. compiled_once.cc compiles them.
#pragma once

#include <fmt/format.h>

extern template void fmt::detail::vformat_to<char>(fmt::detail::buffer<char>&, fmt::string_view,
                                                   fmt::format_args, fmt::detail::locale_ref);
