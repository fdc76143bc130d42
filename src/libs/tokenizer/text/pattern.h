// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/tokenizer/error.h"
#include "libs/tokenizer/text/alphabet.h"
#include "libs/tokenizer/text/matcher.h"
#include "libs/tokenizer/text/pattern_syntax.h"

#include <memory>
#include <string>
#include <string_view>

struct pcre2_real_code_8;

namespace baton::tokenizer {

// Role. Any regular expression of a tokenizer, run by PCRE2 over the symbols of its alphabet.
// Confinement. Immutable; any thread.
// Invariants. TooHard is thrown when PCRE2 gives up (a match takes too many steps).
class Pattern : public Matcher {
 public:
  static Result<std::unique_ptr<const Pattern>> compile(std::string_view pattern, Dialect dialect);
  // `pattern` is for errors.
  static Result<std::unique_ptr<const Pattern>> compile(std::string_view pattern,
                                                        const PatternParts& parts);

  void find_all(std::string_view text, std::vector<Match>& matches) const override;

 private:
  struct FreeCode {
    void operator()(pcre2_real_code_8* code) const;
  };
  using Code = std::unique_ptr<pcre2_real_code_8, FreeCode>;

  Pattern(Alphabet alphabet, Code code) : alphabet_(std::move(alphabet)), code_(std::move(code)) {}

  Alphabet alphabet_;
  Code code_;
};

}  // namespace baton::tokenizer
