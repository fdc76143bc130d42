// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/bpe_model.h"

#include "libs/tokenizer/bpe_merge.h"
#include "libs/tokenizer/text/byte_alphabet.h"
#include "libs/tokenizer/text/too_hard.h"
#include "libs/tokenizer/text/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace baton::tokenizer {
namespace {

constexpr TokenId kNone = Vocabulary::kNone;
// Merging takes some thirty times the memory of a word.
constexpr std::size_t kLongestWord = std::size_t{1} << 20;
// How many pieces ahead the table is fetched from memory.
constexpr std::size_t kAhead = 4;
// Number of tokens whose merge result is computed at load. Low ids are common ones.
constexpr TokenId kAskedAtOnce = 32'768;
constexpr std::size_t kLongestAsked = 32;

}  // namespace

BpeModel::BpeModel(Source source)
    : vocabulary_(std::move(source.vocabulary)),
      unwritable_(std::move(source.unwritable)),
      merges_(std::move(source.merges)),
      options_(std::move(source.options)),
      byte_level_(source.byte_level),
      whole_(std::make_unique<std::atomic<Whole>[]>(vocabulary_.id_end())) {}

Result<std::unique_ptr<const Model>> BpeModel::make(Source source) {
  std::unique_ptr<BpeModel> model(new BpeModel(std::move(source)));
  if (model->options_.unknown) {
    const auto id = model->find(*model->options_.unknown);
    if (id) model->unknown_ = *id;
  }
  model->prepare_symbols();
  // The library notices only when it needs the token, and fails that request.
  if (model->options_.unknown && model->unknown_ == kNone && !model->complete_) {
    return fail(ErrorCode::InvalidFile,
                fmt::format("the model's unk_token \"{}\" is not in its vocabulary",
                            *model->options_.unknown));
  }
  model->prepare_cuts();
  model->ask_common();
  return model;
}

void BpeModel::prepare_symbols() {
  for (unsigned byte = 0; byte < 256; ++byte) {
    const char character = static_cast<char>(byte);
    const bool alone = byte_level_ == ByteLevel::Yes || byte < 0x80;
    byte_symbols_[byte] =
        alone ? vocabulary_.find_or(std::string_view(&character, 1), kNone) : kNone;
    fallback_[byte] = options_.byte_fallback
                          ? vocabulary_.find_or(fmt::format("<0x{:02X}>", byte), kNone)
                          : kNone;
  }
  const bool every_byte = std::ranges::find(byte_symbols_, kNone) == byte_symbols_.end();
  complete_ = byte_level_ == ByteLevel::Yes ? every_byte : every_character_has_symbols();
  if (byte_level_ == ByteLevel::No || !every_byte) return;
  byte_merges_.resize(256 * 256);
  for (unsigned left = 0; left < 256; ++left) {
    for (unsigned right = 0; right < 256; ++right) {
      byte_merges_[left << 8 | right] = merges_.find(byte_symbols_[left], byte_symbols_[right]);
    }
  }
}

// A character without a token falls back to those of its bytes, if all of them have one.
bool BpeModel::every_character_has_symbols() const {
  for (unsigned byte = 0; byte < 256; ++byte) {
    const bool in_utf8 = byte < 0xC0 || (byte >= 0xC2 && byte <= 0xF4);
    if (in_utf8 && byte_symbols_[byte] == kNone && fallback_[byte] == kNone) return false;
  }
  return true;
}

void BpeModel::prepare_cuts() {
  if (byte_level_ == ByteLevel::Yes || !options_.prefix.empty() || !options_.suffix.empty()) return;
  // Characters that are not in the vocabulary become byte tokens or unknown tokens, or they are
  // dropped. The two sides of a cut must not depend on each other through those.
  const bool lone_unknown = unknown_ != kNone && !options_.byte_fallback && !options_.fuse_unknown;
  if (!complete_ && !lone_unknown) return;
  std::vector<bool> stands_in(vocabulary_.id_end());
  if (unknown_ != kNone) stands_in[unknown_] = true;
  for (const TokenId id : fallback_) {
    if (id != kNone) stands_in[id] = true;
  }
  SafeCuts cuts;
  bool sound = true;
  merges_.for_each([&](TokenId left, TokenId right) {
    // Never seen; such a model is merged in one go.
    if (stands_in[left] || stands_in[right]) sound = false;
    cuts.forbid(vocabulary_.text(left), vocabulary_.text(right));
  });
  if (sound) cuts_ = std::move(cuts);
}

// A word that is one of these tokens need not be merged when a text has it for the first time.
void BpeModel::ask_common() const {
  if (options_.ignore_merges && !cuts_) return;  // the result is never used
  // A long prefix or suffix would make this slow.
  if (!options_.prefix.empty() || !options_.suffix.empty()) return;
  Workspace workspace;
  TokenIds ids;
  const TokenId end = std::min(vocabulary_.id_end(), kAskedAtOnce);
  for (TokenId id = 0; id < end; ++id) {
    const std::string_view text = vocabulary_.has(id) ? vocabulary_.text(id) : std::string_view();
    if (text.empty() || text.size() > kLongestAsked) continue;
    ids.clear();
    encode_word(text, workspace, ids);
  }
}

TokenId BpeModel::symbol_of(std::string_view character) const {
  if (character.size() == 1) return byte_symbols_[static_cast<unsigned char>(character[0])];
  return vocabulary_.find_or(character, kNone);
}

void BpeModel::start_with_bytes(std::string_view word, Workspace& workspace) const {
  const std::size_t count = word.size();
  workspace.symbols.resize(count);
  workspace.merges.resize(count);
  for (std::size_t at = 0; at < count; ++at) {
    const auto byte = static_cast<unsigned char>(word[at]);
    workspace.symbols[at] = byte_symbols_[byte];
    if (at + 1 < count) {
      workspace.merges[at] =
          byte_merges_[std::size_t{byte} << 8 | static_cast<unsigned char>(word[at + 1])];
    }
  }
}

// Follows the library, including unknown characters that wait while byte tokens pass them.
void BpeModel::start_with_characters(std::string_view word, Workspace& workspace) const {
  std::vector<TokenId>& symbols = workspace.symbols;
  symbols.clear();
  bool waiting = false;
  const auto flush = [&] {
    if (waiting) symbols.push_back(unknown_);
    waiting = false;
  };
  const bool affixes = !options_.prefix.empty() || !options_.suffix.empty();
  for (std::size_t at = 0; at < word.size();) {
    const std::size_t length = byte_level_ == ByteLevel::Yes ? 1 : utf8_size(word[at]);
    std::string_view character = word.substr(at, length);
    if (affixes) {
      workspace.text.clear();
      if (at > 0) workspace.text.append(options_.prefix);
      workspace.text.append(character);
      if (at + length == word.size()) workspace.text.append(options_.suffix);
      character = workspace.text;
    }
    at += length;

    const TokenId symbol = affixes ? vocabulary_.find_or(character, kNone) : symbol_of(character);
    if (symbol != kNone) {
      flush();
      symbols.push_back(symbol);
      continue;
    }
    const auto fallback = [&](char byte) { return fallback_[static_cast<unsigned char>(byte)]; };
    if (options_.byte_fallback &&
        std::ranges::find(character, kNone, fallback) == character.end()) {
      for (const char byte : character) symbols.push_back(fallback(byte));
      continue;
    }
    if (unknown_ == kNone) continue;
    if (!options_.fuse_unknown) flush();
    waiting = true;
  }
  flush();
  workspace.merges.resize(symbols.size());
  for (std::size_t at = 0; at + 1 < symbols.size(); ++at) {
    workspace.merges[at] = merges_.find(symbols[at], symbols[at + 1]);
  }
}

void BpeModel::merge(std::string_view word, Workspace& workspace) const {
  if (word.size() > kLongestWord) throw TooHard("it has a word of more than a mebibyte");
  if (byte_merges_.empty()) {
    start_with_characters(word, workspace);
  } else {
    start_with_bytes(word, workspace);
  }
  merge_symbols(merges_, workspace);
}

void BpeModel::append_merged(std::string_view word, Workspace& workspace, TokenIds& ids) const {
  if (workspace.words.append_known(word, ids)) return;
  merge(word, workspace);
  const std::size_t before = ids.size();
  ids.insert(ids.end(), workspace.symbols.begin(), workspace.symbols.end());
  workspace.words.remember(word, std::span(ids).subspan(before));
}

void BpeModel::encode_word(std::string_view word, Workspace& workspace, TokenIds& ids) const {
  const TokenId id = vocabulary_.find_or(word, kNone);
  const Whole known = id == kNone ? Whole::No : whole_[id].load(std::memory_order_relaxed);
  if (known == Whole::Yes) {
    ids.push_back(id);
    return;
  }
  const std::size_t before = ids.size();
  append_merged(word, workspace, ids);
  if (known == Whole::NotAsked) {
    const bool itself = ids.size() == before + 1 && ids.back() == id;
    whole_[id].store(itself ? Whole::Yes : Whole::No, std::memory_order_relaxed);
  }
}

void BpeModel::encode_piece(std::string_view piece, Workspace& workspace, TokenIds& ids) const {
  if (options_.ignore_merges) {
    const TokenId id = vocabulary_.find_or(piece, kNone);
    if (id != kNone) {
      ids.push_back(id);
      return;
    }
    if (!cuts_) {
      append_merged(piece, workspace, ids);
      return;
    }
  }
  if (!cuts_) {
    encode_word(piece, workspace, ids);
    return;
  }
  while (!piece.empty()) {
    const std::size_t length = cuts_->first_word(piece);
    encode_word(piece.substr(0, length), workspace, ids);
    piece.remove_prefix(length);
  }
}

void BpeModel::encode(std::span<const std::string_view> pieces, Workspace& workspace,
                      TokenIds& ids) const {
  for (std::size_t at = 0; at < pieces.size(); ++at) {
    if (at + kAhead < pieces.size()) vocabulary_.prefetch(pieces[at + kAhead]);
    if (!pieces[at].empty()) encode_piece(pieces[at], workspace, ids);
  }
}

std::size_t BpeModel::cut_behind(std::string_view piece, std::size_t at_least) const {
  // With ignore_merges a piece that is a token must be looked up uncut.
  if (!cuts_ || options_.ignore_merges) return piece.size();
  while (at_least < piece.size() && is_utf8_continuation(piece[at_least])) ++at_least;
  if (at_least >= piece.size()) return piece.size();
  return at_least + cuts_->first_word(piece.substr(at_least));
}

std::optional<TokenId> BpeModel::find(std::string_view token) const {
  if (byte_level_ == ByteLevel::No) return vocabulary_.find(token);
  std::string bytes;
  if (ByteAlphabet::instance().read(token, bytes)) return vocabulary_.find(bytes);
  return unwritable_.find(token);
}

std::optional<std::string> BpeModel::token(TokenId id) const {
  if (unwritable_.has(id)) return std::string(unwritable_.text(id));
  if (!vocabulary_.has(id)) return std::nullopt;
  if (byte_level_ == ByteLevel::No) return std::string(vocabulary_.text(id));
  std::string written;
  ByteAlphabet::instance().write(vocabulary_.text(id), written);
  return written;
}

}  // namespace baton::tokenizer
