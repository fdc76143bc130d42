// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "prompt/content_format.h"

#include "prompt/jinja/ast_query.h"

namespace baton::prompt {

ContentFormat content_format_of(std::string_view source) {
  return jinja::loops_over_member(source, "messages", "content") ? ContentFormat::Parts
                                                                 : ContentFormat::Text;
}

}  // namespace baton::prompt
