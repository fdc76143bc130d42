// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/tokenizer.h"

#include "libs/tokenizer/text/byte_alphabet.h"
#include "libs/tokenizer/text/pieces.h"
#include "libs/tokenizer/text/too_hard.h"
#include "libs/tokenizer/tokenizer_parts.h"
#include "libs/tokenizer/workspace_pool.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <thread>
#include <utility>

namespace baton::tokenizer {
namespace {

// How much text is encoded between two looks at whether to go on: a fraction of a millisecond.
constexpr std::size_t kStride = std::size_t{8} << 10;
// A segment of text that the cache knows as one has at least so many bytes, where there are more.
constexpr std::size_t kLongSegment = 128;
// Shorter ones end at one in so many tokens.
constexpr std::uint32_t kOneTokenIn = 4;
// Words that the cache knows as one end at one in so many spaces.
constexpr std::uint32_t kOneSpaceIn = 32;
// Tokens are rarely shorter than this on average. If they are, all of them are copied once more.
constexpr std::size_t kBytesPerToken = 3;

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
        cuts_words_(parts.normalizer == nullptr && parts.pre_tokenizer != nullptr &&
                    parts.pre_tokenizer->cuts_between_words()) {}

  // False where it was stopped.
  bool encode(std::string_view text) {
    if (encoding_.stop.stop_requested()) return false;
    if (encoding_.cache == nullptr) return encode_parts(text);
    Place place = Place::First;
    clear_ = 0;
    for (std::string_view rest = text; !rest.empty(); place = Place::Later) {
      std::size_t length = 0;
      if (parts_.added.may_end_at(rest, cursor_.next.size)) {
        length = encoding_.cache->append_next(rest, cursor_, ids_);
      }
      if (length != 0) {
        if (!go_on(length)) return false;
      } else {
        length = encode_parts(rest, place);
        if (length == 0) return false;
      }
      rest.remove_prefix(length);
      clear_ -= std::min(clear_, length);
    }
    return true;
  }

 private:
  bool encode_parts(std::string_view text) {
    bool going = true;
    parts_.added.cut(text, [&](const AddedTokens::Part& part) {
      const Place place = part.text.data() == text.data() ? Place::First : Place::Later;
      going = encode_part(part, place);
      return going;
    });
    return going;
  }

  bool encode_part(const AddedTokens::Part& part, Place place) {
    if (!part.id) return encode_segment(part.text, place);
    ids_.push_back(*part.id);
    return go_on(part.text.size());
  }

  // Encodes what is looked up in the cache at once, about a message. Returns how long it is, 0 where
  // it was stopped.
  std::size_t encode_parts(std::string_view text, Place place) {
    segment_parts_.clear();
    std::size_t length = 0;
    bool ends = false;
    parts_.added.cut(text, clear_, [&](const AddedTokens::Part& part) {
      segment_parts_.push_back(part);
      ends = part.id && parts_.added.is_border(*part.id) && is_end(text.substr(0, length));
      length = static_cast<std::size_t>(part.end - text.data());
      return !ends;
    });
    // A segment that ends with the text may continue in another text.
    if (!ends) cursor_ = {};
    const bool encoded = with_cache(text.substr(0, length), place, cursor_, [&] {
      return std::ranges::all_of(segment_parts_, [&](const AddedTokens::Part& part) {
        return encode_part(part, part.text.data() == text.data() ? place : Place::Later);
      });
    });
    return encoded ? length : 0;
  }

  // Whether a segment ends with the border behind this.
  static bool is_end(std::string_view before) {
    return before.size() >= kLongSegment ||
           (before.size() >= SegmentCache::kShortest && is_chosen(before, kOneTokenIn));
  }

  // If it may be cut between words, parts of it are looked up on their own: a template that puts
  // text before a message leaves them unchanged.
  bool encode_segment(std::string_view text, Place place) {
    if (encoding_.cache == nullptr || !cuts_words_) return encode_anew(text, place);
    std::size_t length = first_words(text);
    if (length == text.size()) return encode_anew(text, place);
    while (!text.empty()) {
      const std::string_view words = text.substr(0, length);
      SegmentCache::Cursor none;
      if (!with_cache(words, place, none, [&] { return encode_anew(words, place); })) return false;
      text.remove_prefix(length);
      place = Place::Later;
      length = first_words(text);
    }
    return true;
  }

  static std::size_t first_words(std::string_view text) {
    const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
    std::size_t space = text.find(' ', SegmentCache::kShortest);
    for (; space != text.npos; space = text.find(' ', space + 1)) {
      if (is_letter(text[space - 1]) && is_chosen(text.substr(0, space), kOneSpaceIn)) return space;
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
  bool with_cache(std::string_view text, Place place, SegmentCache::Cursor& cursor, Encode encode) {
    if (encoding_.cache == nullptr || text.size() < SegmentCache::kShortest) {
      cursor = {};
      return encode();
    }
    const SegmentCache::Name name = SegmentCache::name_of(text, place);
    if (encoding_.cache->append_known(name, text, cursor, ids_)) return go_on(text.size());
    const std::size_t before = ids_.size();
    if (!encode()) return false;
    encoding_.cache->remember(name, text, std::span(ids_).subspan(before), cursor);
    return true;
  }

  bool encode_anew(std::string_view text, Place place) {
    if (parts_.normalizer != nullptr) text = parts_.normalizer->apply(text, normalized_);
    if (!parts_.added.any_normalized()) return encode_normalized(text, place);
    bool going = true;
    parts_.added.cut_normalized(text, [&](const AddedTokens::Part& part) {
      const bool first = place == Place::First && part.text.data() == text.data();
      if (part.id) {
        ids_.push_back(*part.id);
      } else {
        going = encode_normalized(part.text, first ? Place::First : Place::Later);
      }
      return going;
    });
    return going;
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
    for (std::span rest(pieces_.views); !rest.empty();) {
      if (rest.front().size() > kStride) {
        if (!encode_beginning(rest.front())) return false;
        if (rest.front().empty()) rest = rest.subspan(1);
        continue;
      }
      std::size_t count = 0;
      std::size_t bytes = 0;
      for (; count < rest.size() && bytes + rest[count].size() <= kStride; ++count) {
        bytes += rest[count].size();
      }
      parts_.model->encode(rest.first(count), workspace_, ids_);
      rest = rest.subspan(count);
      if (!go_on(bytes)) return false;
    }
    return true;
  }

  // Takes from a piece what is encoded between two looks, or more where it cannot be cut there.
  bool encode_beginning(std::string_view& piece) {
    const std::string_view beginning = piece.substr(0, parts_.model->cut_behind(piece, kStride));
    parts_.model->encode({&beginning, 1}, workspace_, ids_);
    piece.remove_prefix(beginning.size());
    return go_on(beginning.size());
  }

  // Counts the encoded bytes. Without a yield, Linux may let a thread that has just woken up wait
  // for its next tick, which is milliseconds away.
  bool go_on(std::size_t bytes) {
    since_look_ += bytes;
    if (since_look_ < kStride) return true;
    since_look_ = 0;
    if (encoding_.give_way == GiveWay::Yes) std::this_thread::yield();
    return !encoding_.stop.stop_requested();
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
  const bool cuts_words_;
  std::size_t since_look_ = 0;  // bytes
  std::string normalized_;
  std::vector<AddedTokens::Part> segment_parts_;
  SegmentCache::Cursor cursor_;
  std::size_t clear_ = 0;  // of what is left of the text; see AddedTokens::cut()
  Pieces pieces_;
};

Tokenizer::Tokenizer(std::unique_ptr<const Parts> parts)
    : parts_(std::move(parts)), workspaces_(std::make_unique<WorkspacePool>()) {}
Tokenizer::~Tokenizer() = default;

Result<TokenIds> Tokenizer::encode(std::string_view text, const Encoding& encoding) const {
  if (!simdjson::validate_utf8(text.data(), text.size())) {
    return fail(ErrorCode::InvalidText, "the text is not valid UTF-8");
  }
  const bool special = encoding.add_special == AddSpecial::Yes;
  TokenIds ids;
  ids.reserve(text.size() / kBytesPerToken + 16);
  if (special) ids = parts_->post_processor.before;
  try {
    const WorkspacePool::Lease workspace(*workspaces_);
    if (!Run(*parts_, *workspace, encoding, ids).encode(text))
      return fail(ErrorCode::Stopped, "the tokens are not wanted any more");
  } catch (const TooHard& why) {
    return fail(ErrorCode::TooCostly, fmt::format("the text cannot be tokenized: {}", why.what()));
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

bool Tokenizer::differs_by_release() const { return parts_->differs_by_release; }

bool Tokenizer::byte_level() const {
  return parts_->pre_tokenizer != nullptr && parts_->pre_tokenizer->byte_level() &&
         parts_->decoder != nullptr && parts_->decoder->byte_level() && parts_->model->complete() &&
         !parts_->added.lose_space();
}

}  // namespace baton::tokenizer
