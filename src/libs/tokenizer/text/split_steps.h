// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/tokenizer/text/code_point_table.h"
#include "libs/tokenizer/text/matcher.h"
#include "libs/tokenizer/text/pre_tokenizer.h"
#include "libs/tokenizer/text/split.h"

#include <memory>
#include <string>
#include <string_view>

namespace baton::tokenizer {

// Role. One pre-tokenizer of a sequence: cuts a piece into smaller ones, and may change it.
// Confinement. Immutable; any thread.
class SplitStep {
 public:
  virtual ~SplitStep() = default;

  // Appends to `pieces`, never an empty piece. Requires: valid UTF-8, not empty.
  virtual void run(std::string_view piece, Place place, Pieces& pieces) const = 0;
  // See PreTokenizer.
  virtual bool cuts_between_words() const { return false; }
};

// Role. Cuts at what a matcher finds: Split, Digits, Punctuation and others.
class MatchStep : public SplitStep {
 public:
  MatchStep(std::unique_ptr<const Matcher> matcher, SplitBehavior behavior, bool invert);

  void run(std::string_view piece, Place place, Pieces& pieces) const override;
  bool cuts_between_words() const override { return isolates_ && matcher_->cuts_between_words(); }

 private:
  std::unique_ptr<const Matcher> matcher_;
  SplitBehavior behavior_;
  bool invert_;
  bool isolates_;
};

// Role. Whitespace: words and other signs, without the space between them.
class WordStep : public SplitStep {
 public:
  WordStep();

  void run(std::string_view piece, Place place, Pieces& pieces) const override;

 private:
  enum Sort : std::uint8_t { Space, Word, Sign };
  CodePointTable sorts_;
};

// Role. FixedLength: pieces of a fixed number of characters.
class FixedLengthStep : public SplitStep {
 public:
  // Requires: at least 1.
  explicit FixedLengthStep(std::size_t length) : length_(length) {}

  void run(std::string_view piece, Place place, Pieces& pieces) const override;

 private:
  std::size_t length_;
};

// Role. Metaspace: spaces become a sign, and one is put in front; cuts before each of them.
class MetaspaceStep : public SplitStep {
 public:
  enum class Prepend { First, Never, Always };

  MetaspaceStep(std::string sign, Prepend prepend, bool split)
      : sign_(std::move(sign)), prepend_(prepend), split_(split) {}

  void run(std::string_view piece, Place place, Pieces& pieces) const override;

 private:
  std::string sign_;
  Prepend prepend_;
  bool split_;
};

// Role. ByteLevel with `add_prefix_space`: puts a space in front where there is none.
class PrefixSpaceStep : public SplitStep {
 public:
  void run(std::string_view piece, Place place, Pieces& pieces) const override;
};

// Role. Writes a piece in ByteLevel's alphabet, for steps that come behind ByteLevel and see it so.
class ToByteAlphabetStep : public SplitStep {
 public:
  void run(std::string_view piece, Place place, Pieces& pieces) const override;
};

// Role. Turns a piece in ByteLevel's alphabet into the bytes it stands for.
class FromByteAlphabetStep : public SplitStep {
 public:
  void run(std::string_view piece, Place place, Pieces& pieces) const override;
};

}  // namespace baton::tokenizer
