// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "engine/shared/text_patch.h"

#include <algorithm>
#include <utility>

namespace baton::engine {

void TextPatch::replace(std::string_view part, std::string by) {
  const auto begin = static_cast<std::size_t>(part.data() - text_.data());
  const auto behind = std::ranges::upper_bound(edits_, begin, {}, &Edit::begin);
  edits_.insert(behind, Edit{begin, begin + part.size(), std::move(by)});
}

std::string TextPatch::apply() const {
  std::string out;
  out.reserve(text_.size() + 64);
  std::size_t at = 0;
  for (const Edit& edit : edits_) {
    out.append(text_, at, edit.begin - at).append(edit.by);
    at = edit.end;
  }
  return out.append(text_, at);
}

}  // namespace baton::engine
