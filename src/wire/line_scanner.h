// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <cstddef>
#include <string_view>

namespace baton::wire {

// Role. Finds the blank line that ends a head or a trailer section, and refuses on the way what
//   lenient parsers read in different ways: bare CR or LF, control bytes, folded lines.
// Confinement. One thread.
// Lifetime. Owned by a parser, good for one section.
// Invariants. What it reports depends on the bytes alone, never on how they were cut into calls.
class LineScanner {
 public:
  enum class Section { Head, Trailers };
  enum class Status { NeedMore, End, Malformed, TooLong };
  struct Progress {
    std::size_t consumed;
    Status status;
  };

  // `limit` counts every byte of the section, its closing blank line included.
  LineScanner(Section section, std::size_t limit) : section_(section), left_(limit) {}

  Progress scan(std::string_view bytes);

  // A line began. Blank lines in front of a head are no part of it.
  bool started() const { return started_; }
  // Describes the fault; only after Malformed.
  std::string_view problem() const { return problem_; }

 private:
  enum class State { LineStart, InLine, AfterCr, AfterBlankCr };

  Progress scan_within_limit(std::string_view bytes);
  Progress refuse(std::size_t at, std::string_view problem);

  Section section_;
  State state_ = State::LineStart;
  bool started_ = false;
  std::size_t left_;
  std::string_view problem_;
};

}  // namespace baton::wire
