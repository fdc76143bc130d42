// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace baton::cli {

struct TokenizeOptions {
  std::string model;            // folder
  std::string chat_template;    // file, instead of the folder's own
  std::string file;             // text
  std::string chat;             // messages, or a request with messages
  std::string engine = "vllm";  // whose rules apply
  std::string release;          // of the engine; empty: the newest that Baton knows
  bool no_special = false;
  bool render = false;  // stop at the text the template makes
  bool json = false;
};

CLI::App* add_tokenize_command(CLI::App& root, TokenizeOptions& options);
// The process' exit code: 0; 1 where the model or the text cannot be used.
int run_tokenize_command(const TokenizeOptions& options);

}  // namespace baton::cli
