// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "engine/shared/stream_event_reader.h"

#include "libs/scan/byte_block.h"
#include "wire/json_array.h"
#include "wire/json_object.h"

#include <simdjson.h>

#include <algorithm>
#include <array>
#include <optional>

namespace baton::engine {
namespace {

// Longer ones hold more than a token's text, and hardly repeat.
constexpr std::size_t kLongestKnown = 768;
// Where events differ in more than a text (log-probabilities, token ids, choices in turn), learning is
// often in vain. Learning costs this much, an event like the known one earns so much back, any other
// event a unit; learning stops at the most.
constexpr std::uint32_t kLearningCosts = 64;
constexpr std::uint32_t kHitEarns = 16;
constexpr std::uint32_t kMostSpent = 8 * kLearningCosts;

constexpr std::array<bool, 256> kAfterBackslash = [] {
  std::array<bool, 256> table{};
  for (const char c : std::string_view("\"\\/bfnrt")) table[static_cast<unsigned char>(c)] = true;
  return table;
}();

// Whether the text is surely sound between the quotes of a JSON string. The rare \u escapes are left
// to the parser.
bool is_sound_text(std::string_view text) {
  using scan::ByteBlock;
  constexpr unsigned char kFirstPrintable = 0x20;
  constexpr unsigned char kHighBit = 0x80;
  const auto is_plain_block = [](const char* from) {
    const ByteBlock block = scan::load_block(from);
    const auto hits = (block == std::uint8_t{'"'}) | (block == std::uint8_t{'\\'}) |
                      (block < kFirstPrintable) | (block >= kHighBit);
    return scan::first_hit(hits) == sizeof(ByteBlock);
  };
  const char* at = text.data();
  const char* const end = at + text.size();
  while (static_cast<std::size_t>(end - at) >= sizeof(ByteBlock) && is_plain_block(at))
    at += sizeof(ByteBlock);
  if (text.size() >= sizeof(ByteBlock) && is_plain_block(end - sizeof(ByteBlock)) &&
      static_cast<std::size_t>(end - at) < sizeof(ByteBlock))
    return true;
  unsigned char all = 0;
  while (at < end) {
    const auto byte = static_cast<unsigned char>(*at++);
    all |= byte;
    if (byte == '"' || byte < kFirstPrintable) return false;
    if (byte != '\\') continue;
    if (at == end || !kAfterBackslash[static_cast<unsigned char>(*at)]) return false;
    ++at;
  }
  return all < kHighBit || simdjson::validate_utf8(text.data(), text.size());
}

// The text of a choice's token, between its quotes, in an event that was found sound.
std::optional<std::string_view> token_text(std::string_view data) {
  const auto event = wire::JsonObject::within(data);
  const auto choices = event ? event->find("choices") : std::nullopt;
  const auto first = choices ? wire::first_element(*choices) : std::nullopt;
  const auto choice = first ? wire::JsonObject::within(*first) : std::nullopt;
  if (!choice) return std::nullopt;
  const auto delta = choice->find_object("delta");
  const auto text = delta ? delta->find("content") : choice->find("text");
  if (!text || !text->starts_with('"')) return std::nullopt;
  return text->substr(1, text->size() - 2);
}

}  // namespace

StreamEvent StreamEventReader::read(std::string_view data) {
  const bool known = differs_in_text(data);
  // A text that is not empty makes a token, whatever else it is.
  if (known && is_sound_text(data.substr(text_at_, data.size() - known_.size()))) {
    spent_ -= std::min(spent_, kHitEarns);
    return {StreamEvent::Kind::Chunk, true, false, std::nullopt};
  }
  const StreamEvent event = read_stream_event(data);
  const bool only_token = event.kind == StreamEvent::Kind::Chunk && event.has_token &&
                          !event.has_finish && !event.usage;
  if (only_token && !known && spent_ + kLearningCosts <= kMostSpent) {
    learn(data);
    spent_ += kLearningCosts;
  } else if (spent_ > 0) {
    --spent_;
  }
  return event;
}

bool StreamEventReader::differs_in_text(std::string_view data) const {
  if (known_.empty() || data.size() <= known_.size()) return false;
  const std::string_view before(known_.data(), text_at_);
  const std::string_view after = std::string_view(known_).substr(text_at_);
  return data.starts_with(before) && data.ends_with(after);
}

void StreamEventReader::learn(std::string_view data) {
  const auto text = token_text(data);
  if (!text || text->empty() || data.size() - text->size() > kLongestKnown) return;
  text_at_ = static_cast<std::uint32_t>(text->data() - data.data());
  std::string known;
  known.reserve(data.size() - text->size());
  known.append(data.substr(0, text_at_)).append(data.substr(text_at_ + text->size()));
  known_ = std::move(known);
}

}  // namespace baton::engine
