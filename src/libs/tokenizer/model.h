// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/tokenizer/error.h"
#include "libs/tokenizer/merge_table.h"
#include "libs/tokenizer/token.h"
#include "libs/tokenizer/word_memory.h"

#include <simdjson.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace baton::tokenizer {

// Role. Memory that encoding one text uses over and over.
// Confinement. One thread.
struct Workspace {
  std::vector<TokenId> symbols;
  std::vector<Merge> merges;            // of each symbol with the next
  std::vector<std::uint32_t> next;      // links between symbols
  std::vector<std::uint32_t> previous;  // links between symbols
  std::vector<std::uint64_t> queue;     // of merges to come
  std::string text;
  WordMemory words;
};

// Whether the pieces a model gets are plain bytes that its file writes in ByteLevel's alphabet.
enum class ByteLevel { No, Yes };

// Role. Turns the pieces of a text into tokens, as the `model` of a tokenizer.json says.
// Confinement. Immutable; any thread.
class Model {
 public:
  virtual ~Model() = default;

  // A feature that is not known is an error that names it.
  static Result<std::unique_ptr<const Model>> from_json(simdjson::dom::element json,
                                                        ByteLevel byte_level);

  // Appends the tokens of each piece.
  virtual void encode(std::span<const std::string_view> pieces, Workspace& workspace,
                      TokenIds& ids) const = 0;

  // Offset, at least `at_least`, at which a piece can be cut into two with the same tokens; its end
  // if there is none.
  virtual std::size_t cut_behind(std::string_view piece, std::size_t /*at_least*/) const {
    return piece.size();
  }

  // Tokens are named here as the file writes them.
  virtual std::optional<TokenId> find(std::string_view token) const = 0;
  virtual std::optional<std::string> token(TokenId id) const = 0;
  virtual std::size_t size() const = 0;
  // Pieces of a byte-level pre-tokenizer are wanted as plain bytes, not in ByteLevel's alphabet.
  virtual bool takes_bytes() const { return false; }
  // No text is lost: every byte or character has a token of its own.
  virtual bool complete() const = 0;
};

}  // namespace baton::tokenizer
