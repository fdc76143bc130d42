// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/tokenizer/error.h"
#include "libs/tokenizer/merge_table.h"
#include "libs/tokenizer/model.h"
#include "libs/tokenizer/safe_cuts.h"
#include "libs/tokenizer/vocabulary.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace baton::tokenizer {

struct BpeOptions {
  std::optional<std::string> unknown = {};  // the token for characters that have none
  std::string prefix = {};                  // of every character but a piece's first
  std::string suffix = {};                  // of a piece's last character
  bool fuse_unknown = false;
  bool byte_fallback = false;
  bool ignore_merges = false;  // a piece that is a token needs no merging
};

// Role. Byte-pair encoding. A byte-level model keeps its tokens as the bytes they stand for, so
//   that pieces are looked up as they come.
// Confinement. Immutable but for the notes on tokens, which are atomic; any thread.
class BpeModel final : public Model {
 public:
  // A file's contents, before its parts are known to fit together.
  struct Source {
    Vocabulary vocabulary;       // bytes, in a byte-level model
    Vocabulary unwritable = {};  // tokens of a byte-level model that no bytes are written as
    MergeTable merges;
    BpeOptions options;
    ByteLevel byte_level = ByteLevel::No;
  };

  static Result<std::unique_ptr<const Model>> from_json(simdjson::dom::element json,
                                                        ByteLevel byte_level);
  static Result<std::unique_ptr<const Model>> make(Source source);

  void encode(std::span<const std::string_view> pieces, Workspace& workspace,
              TokenIds& ids) const override;
  std::size_t cut_behind(std::string_view piece, std::size_t at_least) const override;
  std::optional<TokenId> find(std::string_view token) const override;
  std::optional<std::string> token(TokenId id) const override;
  std::size_t size() const override { return vocabulary_.size() + unwritable_.size(); }
  bool takes_bytes() const override { return byte_level_ == ByteLevel::Yes; }
  bool complete() const override { return complete_; }

 private:
  // Whether merging a token's text gives just the token.
  enum class Whole : std::uint8_t { NotAsked, Yes, No };

  explicit BpeModel(Source source);
  void prepare_symbols();
  bool every_character_has_symbols() const;
  void prepare_cuts();
  void ask_common() const;
  void encode_piece(std::string_view piece, Workspace& workspace, TokenIds& ids) const;
  void encode_word(std::string_view word, Workspace& workspace, TokenIds& ids) const;
  void append_merged(std::string_view word, Workspace& workspace, TokenIds& ids) const;
  void merge(std::string_view word, Workspace& workspace) const;
  void start_with_bytes(std::string_view word, Workspace& workspace) const;
  void start_with_characters(std::string_view word, Workspace& workspace) const;
  TokenId symbol_of(std::string_view character) const;

  Vocabulary vocabulary_;
  Vocabulary unwritable_;
  MergeTable merges_;
  BpeOptions options_;
  ByteLevel byte_level_;
  bool complete_ = false;
  TokenId unknown_ = Vocabulary::kNone;
  std::array<TokenId, 256> byte_symbols_ = {};  // of single bytes; ASCII only, if not byte-level
  std::array<TokenId, 256> fallback_ = {};      // tokens like <0x0A>
  std::vector<Merge> byte_merges_;              // of each two bytes; where no byte is unknown
  std::optional<SafeCuts> cuts_;
  std::unique_ptr<std::atomic<Whole>[]> whole_;  // by id
};

}  // namespace baton::tokenizer
