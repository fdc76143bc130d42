// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "support/temporary_directory.h"

#include <string>
#include <string_view>

namespace baton::test {

// Role. A folder with the files of a model whose tokens can be told by looking: each byte is the
//   token of its value, "hi" is 256, and <|user|>, <|assistant|>, <|end|>, <s> are 257 to 260. Text
//   that gets special tokens begins with <s>; a chat is
//   <s><|role|>content<|end|>…<|assistant|>.
// Lifetime. The folder goes with it.
class TinyModel {
 public:
  TinyModel();

  std::string folder() const { return directory_.path(); }
  // Puts another file there, or another text in one.
  void write(std::string_view name, std::string_view text) const { directory_.write(name, text); }

 private:
  TemporaryDirectory directory_;
};

}  // namespace baton::test
