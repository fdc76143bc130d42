// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <string>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace baton::cli {

// What is wrong with the command line that `root` could not parse, with the nearest command or
// option where one is mistyped, and where the help is.
std::string usage_error(const CLI::App& root, const CLI::ParseError& problem);

}  // namespace baton::cli
