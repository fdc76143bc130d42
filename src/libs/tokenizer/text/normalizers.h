// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/tokenizer/text/char_set.h"
#include "libs/tokenizer/text/code_point_table.h"
#include "libs/tokenizer/text/matcher.h"
#include "libs/tokenizer/text/normalizer.h"
#include "libs/tokenizer/text/unicode.h"

#include <memory>
#include <string>
#include <string_view>

namespace baton::tokenizer {

// Role. Changes single characters: StripAccents, Nmt and parts of BertNormalizer.
class CharActionNormalizer : public Normalizer {
 public:
  enum Action : std::uint8_t { Keep, Remove, MakeSpace, PutSpacesAround };
  struct Rule {
    CharSet set;
    Action action;
  };

  // A later rule overrides those before it.
  explicit CharActionNormalizer(const std::vector<Rule>& rules);

  std::string_view apply(std::string_view text, std::string& buffer) const override;

 private:
  CodePointTable actions_;
};

// Role. Lowercase, a character at a time: a final sigma is not treated specially.
class LowercaseNormalizer : public Normalizer {
 public:
  LowercaseNormalizer();

  std::string_view apply(std::string_view text, std::string& buffer) const override;

 private:
  CodePointTable changes_;
};

// Role. Strip: no white space at the ends.
class StripNormalizer : public Normalizer {
 public:
  StripNormalizer(bool left, bool right) : left_(left), right_(right) {}

  std::string_view apply(std::string_view text, std::string& buffer) const override;

 private:
  bool left_;
  bool right_;
};

// Role. Replace: replaces each match.
class ReplaceNormalizer : public Normalizer {
 public:
  ReplaceNormalizer(std::unique_ptr<const Matcher> matcher, std::string content)
      : matcher_(std::move(matcher)), content_(std::move(content)) {}

  std::string_view apply(std::string_view text, std::string& buffer) const override;

 private:
  std::unique_ptr<const Matcher> matcher_;
  std::string content_;
};

// Role. Prepend: puts a text in front of any text that is not empty.
class PrependNormalizer : public Normalizer {
 public:
  explicit PrependNormalizer(std::string prefix) : prefix_(std::move(prefix)) {}

  std::string_view apply(std::string_view text, std::string& buffer) const override;

 private:
  std::string prefix_;
};

// Role. ByteLevel as a normalizer: writes bytes in its alphabet.
class ByteLevelNormalizer : public Normalizer {
 public:
  std::string_view apply(std::string_view text, std::string& buffer) const override;
};

}  // namespace baton::tokenizer
