// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <string>
#include <vector>

namespace CLI {
class Validator;
}

namespace baton::config {

// For an option of the command line whose value is one of `names`: any other is refused with the
// nearest of them, as in the configuration file.
CLI::Validator one_of(std::vector<std::string> names);

}  // namespace baton::config
