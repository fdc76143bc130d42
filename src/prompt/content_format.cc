// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "prompt/content_format.h"

#include "libs/jinja/ast_query.h"

namespace baton::prompt {
namespace {

jinja::LoopSearch looked_for(ContentSearch search) {
  switch (search) {
    case ContentSearch::Members:
      return jinja::LoopSearch::Members;
    case ContentSearch::Names:
      return jinja::LoopSearch::Names;
    case ContentSearch::Macros:
      break;
  }
  return jinja::LoopSearch::Macros;
}

}  // namespace

ContentFormat content_format_of(std::string_view source, ContentSearch search) {
  return jinja::loops_over_member(source, "messages", "content", looked_for(search))
             ? ContentFormat::Parts
             : ContentFormat::Text;
}

}  // namespace baton::prompt
