// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/index/engine_map.h"

#include <algorithm>
#include <utility>

namespace baton::kvcache {
namespace {

// 17 names for 20 places, so that most are in the line they belong to.
constexpr std::size_t room_in(std::size_t lines) { return lines * 17 / 4; }
constexpr std::size_t lines_for(std::size_t names) { return names * 4 / 17 + 1; }

}  // namespace

EngineMap::~EngineMap() { clear(); }

// Small maps have a page of just the size they need.
EngineMap::Line* EngineMap::take_page(std::size_t lines) {
  std::byte* memory = lines < kPageLines ? allocate_array(lines * sizeof(Line)) : arena_.take();
  auto* page = reinterpret_cast<Line*>(memory);
  for (std::size_t i = 0; i < lines; ++i) {
    page[i].count = page[i].passed = page[i].kinds = page[i].strange = 0;
  }
  return page;
}

void EngineMap::give_page(Line* page, std::size_t lines) {
  auto* memory = reinterpret_cast<std::byte*>(page);
  if (lines < kPageLines) {
    free_array(memory, lines * sizeof(Line));
  } else {
    arena_.give(memory);
  }
}

std::size_t EngineMap::bytes() const {
  return lines_ < kPageLines ? lines_ * sizeof(Line) : pages_.size() * PageArena::kPageBytes;
}

void EngineMap::reserve(std::size_t more) {
  const std::size_t wanted = size_ + more;
  if (wanted <= room_in(lines_)) return;
  // Small ones grow faster: they waste little, and frequent copying costs more.
  const std::size_t sixteenths = lines_ < 4 * kPageLines ? 8 : lines_ < 32 * kPageLines ? 4 : 1;
  std::size_t grown = lines_ + lines_ * sixteenths / 16;
  if (grown >= kPageLines) grown = grown / kPageLines * kPageLines;
  resize(std::max(lines_for(wanted), grown));
}

EngineMap::Entry EngineMap::find_further(std::uint64_t name, std::size_t number) const {
  for (std::size_t i = 1; i < lines_; ++i) {
    Line& it = line(number);
    const unsigned found = it.named(name);
    if (found != 0) return {&it, static_cast<std::uint32_t>(std::countr_zero(found))};
    if ((it.kinds & kind_of(name)) == 0) break;
    number = next(number);
  }
  return {};
}

void EngineMap::Line::remove(std::uint32_t at) {
  const std::uint32_t last = count - 1U;
  low[at] = low[last];
  high[at] = high[last];
  places[at] = places[last];
  const std::uint32_t moved = strange >> last & 1;
  strange = ((strange & ~(1U << at)) | moved << at) & ((1U << last) - 1);
  count = last & 7;
}

void EngineMap::erase(Entry entry) {
  const Line& in = *entry.line_;
  std::size_t number = home_of(name_in(in, entry.at_));
  for (; &line(number) != &in; number = next(number)) line(number).unpass();
  line(number).remove(entry.at_);
  --size_;
  close_up(number);
}

// Moves a name in from the next line, where most of them are: a strange one there has passed this
// one. Filling that one's place as well is not worth the time.
void EngineMap::close_up(std::size_t number) {
  Line& to = line(number);
  if (to.passed == 0) return;
  Line& from = line(next(number));
  if (from.strange == 0) return;
  const auto at = static_cast<std::uint32_t>(std::countr_zero(std::uint32_t{from.strange}));
  const std::uint64_t name = name_in(from, at);
  to.push(name, from.places[at], home_of(name) != number);
  to.unpass();
  from.remove(at);
}

void EngineMap::shrink() {
  if (size_ == 0) {
    clear();
  } else if (lines_ > 4 && size_ < room_in(lines_) / 2) {
    resize(lines_for(size_ + size_ / 4));
  }
}

void EngineMap::clear() {
  for (Line* page : pages_) give_page(page, lines_);
  pages_ = std::vector<Line*>();
  lines_ = size_ = 0;
}

void EngineMap::resize(std::size_t lines) {
  // A map with pages of its own has whole pages.
  if (lines >= kPageLines) lines = (lines + kPageLines - 1) / kPageLines * kPageLines;
  std::vector<Line*> pages;
  pages.reserve((lines + kPageLines - 1) / kPageLines);
  try {
    for (std::size_t i = 0; i < lines; i += kPageLines)
      pages.push_back(take_page(std::min(lines, kPageLines)));
  } catch (...) {  // out of memory: all stays as it was
    for (Line* page : pages) give_page(page, lines);
    throw;
  }
  const std::size_t old_lines = std::exchange(lines_, lines);
  const std::vector<Line*> old = std::exchange(pages_, std::move(pages));
  size_ = 0;
  for (Line* page : old) {
    for (std::size_t i = 0; i < std::min(old_lines, kPageLines); ++i) {
      const Line& it = page[i];
      for (std::uint32_t k = 0; k < it.count; ++k) add(name_in(it, k), it.places[k]);
    }
    give_page(page, old_lines);
  }
}

}  // namespace baton::kvcache
