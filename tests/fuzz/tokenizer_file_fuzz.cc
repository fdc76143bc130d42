// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "fuzz/fuzz_input.h"
#include "libs/tokenizer/tokenizer.h"

#include <string>
#include <string_view>

namespace {

using namespace baton;
using fuzz::require;

// What a file makes is used a little: it must hold together, whatever it is.
void check(const tokenizer::Result<std::shared_ptr<const tokenizer::Tokenizer>>& made) {
  if (!made) {
    require(!made.error().message().empty(), "a refusal says why");
    return;
  }
  const tokenizer::Tokenizer& tokenizer = **made;
  for (const std::string_view text : {"", "a", " hello  <s>ab", "é字😀\n\t12'll", "aaaaaaaaaaaa"}) {
    const auto ids = tokenizer.encode(text, {});
    if (!ids) {  // a pattern may take too many steps to match
      require(!ids.error().message().empty(), "a refusal says why");
      continue;
    }
    static_cast<void>(tokenizer.decode(*ids, tokenizer::SkipSpecial::Yes));
    for (const tokenizer::TokenId id : *ids) static_cast<void>(tokenizer.token(id));
  }
}

}  // namespace

// The first byte chooses the kind of file. A zero byte parts tokenizer.json from its configuration.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data + 1), size - 1);
  const std::size_t border = input.find('\0');
  const std::string_view file = input.substr(0, border);
  const std::string_view config =
      border == std::string_view::npos ? std::string_view() : input.substr(border + 1);
  if (data[0] == 't') {
    check(tokenizer::Tokenizer::from_tiktoken(file, config));
  } else {
    check(tokenizer::Tokenizer::from_json(std::string(file), config));
  }
  return 0;
}
