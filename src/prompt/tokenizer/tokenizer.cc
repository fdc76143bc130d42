// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "prompt/tokenizer/tokenizer.h"

#include "prompt/text/byte_alphabet.h"
#include "prompt/text/pieces.h"
#include "prompt/text/too_hard.h"
#include "prompt/tokenizer/tokenizer_parts.h"
#include "prompt/tokenizer/workspace_pool.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

namespace baton::prompt {
namespace {

// How much text is encoded between two looks at the stop token.
constexpr std::size_t kStride = std::size_t{64} << 10;
// A stretch of text that the cache knows as one has at least so many bytes, where there are more.
constexpr std::size_t kStretch = 128;
// Shorter ones end at one in so many tokens, and lines at one in so many line ends.
constexpr std::uint32_t kOneTokenIn = 4;
constexpr std::uint32_t kOneLineIn = 2;
// Tokens are rarely shorter than this on average.
constexpr std::size_t kBytesPerToken = 4;

}  // namespace

// Role. Encodes one text: what lies between added tokens is normalized, cut and given to the model.
// Confinement. One thread, for the length of a call.
class Tokenizer::Run {
 public:
  Run(const Parts& parts, Workspace& workspace, const Encoding& encoding, TokenIds& ids)
      : parts_(parts),
        workspace_(workspace),
        encoding_(encoding),
        ids_(ids),
        cuts_lines_(parts.normalizer == nullptr && !parts.added.any_normalized() &&
                    parts.pre_tokenizer != nullptr && parts.pre_tokenizer->cuts_behind_lines()) {}

  // False where it was stopped.
  bool encode(std::string_view text) {
    std::vector<AddedTokens::Part> parts;
    parts.reserve(64);
    parts_.added.cut_raw(text, parts);
    std::span<const AddedTokens::Part> rest = parts;
    while (!rest.empty()) {
      const auto stretch = rest.first(first_stretch(rest));
      const Place place = stretch[0].text.data() == text.data() ? Place::First : Place::Later;
      if (encoding_.stop.stop_requested() || !encode_stretch(stretch, place)) return false;
      rest = rest.subspan(stretch.size());
    }
    return true;
  }

 private:
  // How many parts are looked up in the cache at once: what is about a message.
  std::size_t first_stretch(std::span<const AddedTokens::Part> parts) const {
    if (encoding_.cache == nullptr || !parts_.added.find_alone()) return 1;
    const char* const begin = parts.front().text.data();
    for (std::size_t at = 0; at < parts.size(); ++at) {
      if (!parts[at].id || !parts_.added.is_border(*parts[at].id)) continue;
      const auto before = static_cast<std::size_t>(parts[at].text.data() - begin);
      if (before >= kStretch || is_chosen({begin, before}, kOneTokenIn)) return at + 1;
    }
    return parts.size();
  }

  bool encode_stretch(std::span<const AddedTokens::Part> parts, Place place) {
    const char* const begin = parts.front().text.data();
    const char* const end = parts.back().text.data() + parts.back().text.size();
    const auto encode_parts = [&] {
      for (const AddedTokens::Part& part : parts) {
        if (part.id) {
          ids_.push_back(*part.id);
          continue;
        }
        const Place at = part.text.data() == begin ? place : Place::Later;
        if (!encode_segment(part.text, at)) return false;
      }
      return true;
    };
    // A token that looks around itself may be none elsewhere.
    if (parts.size() == 1 && parts[0].id) return encode_parts();
    return with_cache({begin, end}, place, encode_parts);
  }

  // Where it may be cut at lines, parts of it are looked up on their own: they stay as they are if
  // a template puts something in front of a message.
  bool encode_segment(std::string_view text, Place place) {
    if (encoding_.cache == nullptr || !cuts_lines_) return encode_anew(text, place);
    std::size_t length = first_lines(text);
    if (length == text.size()) return encode_anew(text, place);
    while (!text.empty()) {
      const std::string_view lines = text.substr(0, length);
      if (!with_cache(lines, place, [&] { return encode_anew(lines, place); })) return false;
      text.remove_prefix(length);
      place = Place::Later;
      length = first_lines(text);
    }
    return true;
  }

  static std::size_t first_lines(std::string_view text) {
    const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
    for (std::size_t line = text.find('\n', SegmentCache::kShortest);
         line < text.size() && text.size() - line > 2; line = text.find('\n', line + 1)) {
      const char* const behind = text.data() + line + 1;
      if (!is_letter(behind[0]) && !(behind[0] == ' ' && is_letter(behind[1]))) continue;
      if (is_chosen(text.substr(0, line), kOneLineIn)) return line + 1;
    }
    return text.size();
  }

  // Whether a text is cut at a place where it may be. It depends on nothing but the end of what is
  // before, so that the same places are found again behind another beginning.
  static bool is_chosen(std::string_view before, std::uint32_t one_in) {
    std::uint32_t last = 0;
    if (before.size() < sizeof last) return false;
    std::memcpy(&last, before.data() + before.size() - sizeof last, sizeof last);
    return last * 0x9E37'79B9U >> 16U < 0x1'0000U / one_in;
  }

  // The tokens of a text from the cache, else as `encode` makes them.
  template <class Encode>
  bool with_cache(std::string_view text, Place place, Encode encode) {
    const bool cached = encoding_.cache != nullptr && text.size() >= SegmentCache::kShortest;
    if (cached && encoding_.cache->append_known(text, place, ids_)) return true;
    const std::size_t before = ids_.size();
    if (!encode()) return false;
    if (cached) encoding_.cache->remember(text, place, std::span(ids_).subspan(before));
    return true;
  }

  bool encode_anew(std::string_view text, Place place) {
    if (parts_.normalizer != nullptr) text = parts_.normalizer->apply(text, normalized_);
    if (!parts_.added.any_normalized()) return encode_normalized(text, place);
    stretches_.clear();
    parts_.added.cut_normalized(text, stretches_);
    for (const AddedTokens::Part& stretch : stretches_) {
      if (stretch.id) {
        ids_.push_back(*stretch.id);
        continue;
      }
      const bool first = place == Place::First && stretch.text.data() == text.data();
      if (!encode_normalized(stretch.text, first ? Place::First : Place::Later)) return false;
    }
    return true;
  }

  bool encode_normalized(std::string_view text, Place place) {
    if (text.empty()) return true;
    pieces_.clear();
    if (parts_.pre_tokenizer == nullptr) {
      pieces_.views.push_back(text);
    } else {
      parts_.pre_tokenizer->split(text, place, pieces_);
      if (parts_.pre_tokenizer->byte_level() && !parts_.model->takes_bytes()) write_bytes();
    }
    std::span<const std::string_view> rest = pieces_.views;
    while (!rest.empty()) {
      if (encoding_.stop.stop_requested()) return false;
      std::size_t count = 0;
      for (std::size_t bytes = 0; count < rest.size() && bytes < kStride; ++count) {
        bytes += rest[count].size();
      }
      parts_.model->encode(rest.first(count), workspace_, ids_);
      rest = rest.subspan(count);
    }
    return true;
  }

  // For a model that wants its pieces in ByteLevel's alphabet after all.
  void write_bytes() {
    for (std::string_view& piece : pieces_.views) {
      std::string written;
      ByteAlphabet::instance().write(piece, written);
      piece = pieces_.changed.emplace_back(std::move(written));
    }
  }

  const Parts& parts_;
  Workspace& workspace_;
  const Encoding& encoding_;
  TokenIds& ids_;
  const bool cuts_lines_;
  std::string normalized_;
  std::vector<AddedTokens::Part> stretches_;
  Pieces pieces_;
};

Tokenizer::Tokenizer(std::unique_ptr<const Parts> parts)
    : parts_(std::move(parts)), workspaces_(std::make_unique<WorkspacePool>()) {}
Tokenizer::~Tokenizer() = default;

Result<TokenIds> Tokenizer::encode(std::string_view text, const Encoding& encoding) const {
  if (!simdjson::validate_utf8(text.data(), text.size())) {
    return fail(Errc::InvalidRequest, "the text is not valid UTF-8");
  }
  const bool special = encoding.add_special == AddSpecial::Yes;
  TokenIds ids;
  ids.reserve(text.size() / kBytesPerToken + 16);
  if (special) ids = parts_->post_processor.before;
  try {
    const WorkspacePool::Lease workspace(*workspaces_);
    if (!Run(*parts_, *workspace, encoding, ids).encode(text))
      return fail(Errc::ClientGone, "nobody waits for the tokens any more");
  } catch (const TooHard& why) {
    return fail(Errc::PayloadTooLarge, fmt::format("the text cannot be tokenized: {}", why.what()));
  }
  const TokenIds& after = parts_->post_processor.after;
  if (special) ids.insert(ids.end(), after.begin(), after.end());
  return ids;
}

std::string Tokenizer::decode(std::span<const TokenId> ids, SkipSpecial skip) const {
  std::vector<std::string> tokens;
  tokens.reserve(ids.size());
  for (const TokenId id : ids) {
    std::optional<std::string> written = token(id);
    if (!written) continue;
    if (skip == SkipSpecial::Yes && parts_->added.special(*written)) continue;
    tokens.push_back(std::move(*written));
  }
  if (parts_->decoder != nullptr) parts_->decoder->apply(tokens);
  std::string text;
  for (const std::string& part : tokens) {
    if (parts_->decoder == nullptr && &part != &tokens.front()) text.push_back(' ');
    text.append(part);
  }
  return text;
}

std::optional<std::string> Tokenizer::token(TokenId id) const {
  if (const auto added = parts_->added.content(id)) return std::string(*added);
  return parts_->model->token(id);
}

std::optional<TokenId> Tokenizer::id(std::string_view token) const {
  if (const auto added = parts_->added.find(token)) return added;
  return parts_->model->find(token);
}

std::size_t Tokenizer::vocabulary_size() const {
  return parts_->model->size() + parts_->added.beyond(*parts_->model);
}

const std::vector<std::pair<std::string, std::string>>& Tokenizer::special_tokens() const {
  return parts_->special_tokens;
}

bool Tokenizer::byte_level() const {
  return parts_->pre_tokenizer != nullptr && parts_->pre_tokenizer->byte_level() &&
         parts_->decoder != nullptr && parts_->decoder->byte_level() && parts_->model->complete();
}

}  // namespace baton::prompt
