// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors

// Prints the tokens of a text, one a line: the id, a tab, and the piece of text that it adds.
//   tokenize /models/Qwen3-0.6B "Hello, world"

#include "libs/tokenizer/tokenizer_library.h"

#include <cstddef>
#include <iostream>
#include <string>
#include <vector>

namespace {

namespace tokenizer = baton::tokenizer;

int fail(const std::string& why) {
  std::cerr << "tokenize: " << why << '\n';
  return 1;
}

int tokenize(const std::string& folder, const std::string& text) {
  const auto model = tokenizer::Tokenizer::load(folder);
  if (!model) return fail(model.error().message());
  const auto ids = (*model)->encode(text, {});
  if (!ids) return fail(ids.error().message());
  const std::vector<std::string> pieces = tokenizer::token_pieces(**model, *ids);
  for (std::size_t at = 0; at < ids->size(); ++at) {
    std::cout << (*ids)[at] << '\t' << pieces[at] << '\n';
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3) return tokenize(argv[1], argv[2]);
  std::cerr << "usage: tokenize MODEL_FOLDER TEXT\n";
  return 2;
}
