// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "wire/sse_reader.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace baton::wire {
namespace {

constexpr std::string_view kUsualStart = "data: ";

// The position of the first CR or LF at or after `from`; the size of `text` where there is none.
// Eight bytes at a time.
std::size_t find_line_end(std::string_view text, std::size_t from) {
  constexpr std::uint64_t kOnes = 0x0101010101010101;
  const auto has_zero_byte = [](std::uint64_t word) {
    return ((word - kOnes) & ~word & (kOnes * 0x80)) != 0;
  };
  std::size_t at = from;
  for (; text.size() - at >= sizeof(std::uint64_t); at += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + at, sizeof(word));
    if (has_zero_byte(word ^ (kOnes * '\n')) || has_zero_byte(word ^ (kOnes * '\r'))) break;
  }
  while (at < text.size() && text[at] != '\n' && text[at] != '\r') ++at;
  return at;
}

// The value of a `data` line; nullopt for every other line.
std::optional<std::string_view> data_of(std::string_view line) {
  constexpr std::string_view kField = "data";
  if (!line.starts_with(kField)) return std::nullopt;
  line.remove_prefix(kField.size());
  if (line.empty()) return line;
  if (line.front() != ':') return std::nullopt;
  line.remove_prefix(1);
  if (line.starts_with(' ')) line.remove_prefix(1);
  return line;
}

}  // namespace

void SseReader::feed(std::string_view bytes) {
  drop_returned();
  pending_ = overflowed_ ? std::string_view() : bytes;
}

std::optional<SseReader::Event> SseReader::next() {
  drop_returned();
  if (pending_.empty()) return std::nullopt;
  if (after_event_cr_) {
    after_event_cr_ = false;
    if (pending_.front() == '\n') {
      const Event rest{pending_.substr(0, 1), {}};
      pending_.remove_prefix(1);
      return rest;
    }
  }
  if (const auto usual = take_usual()) return usual;
  const std::size_t end = find_event_end();
  const std::string_view part = pending_.substr(0, end);
  pending_.remove_prefix(part.size());
  if (end != std::string_view::npos && carry_.empty()) return make_event(part);
  if (part.size() > limit_ - carry_.size()) {
    overflowed_ = true;
    std::string().swap(carry_);
    pending_ = {};
    return std::nullopt;
  }
  carry_.append(part);
  if (end == std::string_view::npos) return std::nullopt;
  carry_returned_ = true;
  return make_event(carry_);
}

// Nearly all events are one line of data, and came whole.
std::optional<SseReader::Event> SseReader::take_usual() {
  if (!lf_only_ || !at_line_start_ || after_cr_ || !carry_.empty() ||
      !pending_.starts_with(kUsualStart))
    return std::nullopt;
  const std::size_t end = pending_.find('\n', kUsualStart.size());
  const std::string_view line = pending_.substr(0, end);
  if (line.contains('\r')) {
    lf_only_ = false;  // and is not looked for again: the search may go far past the event
    return std::nullopt;
  }
  if (end == pending_.npos || !pending_.substr(end + 1).starts_with('\n')) return std::nullopt;
  const Event event{pending_.substr(0, end + 2), line.substr(kUsualStart.size())};
  pending_.remove_prefix(event.raw.size());
  return event;
}

std::size_t SseReader::held() const {
  return (carry_returned_ ? 0 : carry_.size()) + pending_.size();
}

void SseReader::drop_returned() {
  if (!carry_returned_) return;
  carry_returned_ = false;
  std::string().swap(carry_);
}

std::size_t SseReader::find_event_end() {
  std::size_t at = 0;
  while (at < pending_.size()) {
    const char c = pending_[at];
    const bool ends_line = c == '\n' || c == '\r';
    if (after_cr_ && c == '\n') {
      after_cr_ = false;
      ++at;
    } else if (at_line_start_ && ends_line) {
      after_cr_ = false;
      ++at;
      if (c == '\r' && at == pending_.size()) after_event_cr_ = true;
      if (c == '\r' && at < pending_.size() && pending_[at] == '\n') ++at;
      return at;
    } else if (ends_line) {
      at_line_start_ = true;
      after_cr_ = c == '\r';
      ++at;
    } else {
      at_line_start_ = false;
      after_cr_ = false;
      at = find_line_end(pending_, at);
    }
  }
  return pending_.npos;
}

SseReader::Event SseReader::make_event(std::string_view raw) { return {raw, collect_data(raw)}; }

std::string_view SseReader::collect_data(std::string_view raw) {
  joined_.clear();
  std::optional<std::string_view> first;
  bool several = false;
  while (!raw.empty()) {
    const std::size_t end = find_line_end(raw, 0);
    const auto data = data_of(raw.substr(0, end));
    raw.remove_prefix(std::min(end + 1, raw.size()));
    if (!data) continue;
    if (!first) {
      first = data;
      continue;
    }
    if (!several) joined_ = *first;
    several = true;
    joined_.append("\n").append(*data);
  }
  return several ? std::string_view(joined_) : first.value_or(std::string_view());
}

}  // namespace baton::wire
