// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <cstdint>
#include <string_view>

namespace baton::jinja {

// How far a search for a loop goes.
enum class LoopSearch : std::uint8_t {
  Members,  // loops over the member itself
  Names,    // and loops over any variable of the member's name
  Macros,   // and loops over a macro's parameter that a call gives the member; a variable of the
            // member's name then counts outside of macros only
};

// Whether a template loops over a member of the items of a variable, as in
//   {% for m in messages %}{% for part in m.content %} …
// with `messages` and `content`. This is how the engines find out what a template wants, with their
// limits: names count wherever they occur, `set` passes a variable on to another name, slices,
// filters and tests are looked through, and the search gives up (false) where something found is
// assigned to anything but a plain name, or the template cannot be read.
bool loops_over_member(std::string_view source, std::string_view variable, std::string_view member,
                       LoopSearch search);

}  // namespace baton::jinja
