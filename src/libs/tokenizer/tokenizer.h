// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/tokenizer/error.h"
#include "libs/tokenizer/file_reader.h"
#include "libs/tokenizer/segment_cache.h"
#include "libs/tokenizer/token.h"
#include "libs/tokenizer/tokenizer_release.h"

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace baton::tokenizer {

class WorkspacePool;

enum class AddSpecial { No, Yes };
enum class SkipSpecial { No, Yes };

// Whether to yield the core every fraction of a millisecond: for background work on a thread that
// does nothing else.
enum class GiveWay { No, Yes };

// How one text is to be encoded.
struct Encoding {
  AddSpecial add_special = AddSpecial::Yes;
  SegmentCache* cache = nullptr;  // of this tokenizer and no other
  std::stop_token stop = {};      // asked every now and then; the error is then Stopped
  GiveWay give_way = GiveWay::No;
};

// Role. A Hugging Face tokenizer: text to token ids and back, to the token as the engines do it.
// Confinement. Immutable; any thread.
class Tokenizer {
 public:
  // From a folder with tokenizer.json (or a tiktoken rank file), tokenizer_config.json and
  // config.json where they are there, read as that release of transformers reads them. Unknown
  // members are refused by name.
  static Result<std::shared_ptr<const Tokenizer>> load(const std::filesystem::path& folder,
                                                       Transformers release = Transformers::V5,
                                                       const FileReader& read = read_file);
  // The same from texts; `config_json` may be empty.
  static Result<std::shared_ptr<const Tokenizer>> from_json(std::string tokenizer_json,
                                                            std::string_view config_json,
                                                            const TokenizerOrigin& origin = {});
  static Result<std::shared_ptr<const Tokenizer>> from_tiktoken(std::string_view ranks,
                                                                std::string_view config_json);

  ~Tokenizer();
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  // Text that is not UTF-8 is an InvalidText, one that takes too much is TooCostly.
  Result<TokenIds> encode(std::string_view text, const Encoding& encoding) const;
  // Ids that are not in the vocabulary are left out, as the library does.
  std::string decode(std::span<const TokenId> ids, SkipSpecial skip) const;

  // How the vocabulary writes a token; nullopt where there is no such id.
  std::optional<std::string> token(TokenId id) const;
  std::optional<TokenId> id(std::string_view token) const;
  std::size_t vocabulary_size() const;  // added tokens included
  // The named special tokens of tokenizer_config.json (bos_token, eos_token, unk_token, pad_token …),
  // as chat templates see them.
  const std::vector<std::pair<std::string, std::string>>& special_tokens() const;
  // Whether another release of transformers makes another tokenizer of the same files.
  bool differs_by_release() const;
  // Bytes in, bytes out: decoding gives back what was encoded, as the normalizer left it.
  bool byte_level() const;

 private:
  friend class TokenizerLoader;
  struct Parts;
  class Run;
  explicit Tokenizer(std::unique_ptr<const Parts> parts);
  std::unique_ptr<const Parts> parts_;
  const std::unique_ptr<WorkspacePool> workspaces_;
};

}  // namespace baton::tokenizer
