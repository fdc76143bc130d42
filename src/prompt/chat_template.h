// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"
#include "libs/jinja/template.h"
#include "prompt/content_format.h"

#include <array>
#include <cstddef>
#include <filesystem>
#include <memory>

namespace baton::prompt {

struct ChatTemplate {
  std::shared_ptr<const jinja::Template> program;
  std::array<ContentFormat, 3> formats = {};  // by ContentSearch
  bool names_developers = false;              // see messages.h
  bool names_content = false;                 // see final_message.h

  ContentFormat format(ContentSearch search) const {
    return formats[static_cast<std::size_t>(search)];
  }
};

enum class WithTools { No, Yes };

// Role. The chat templates of one model; each request uses one.
// Confinement. Immutable; any thread.
class ChatTemplates {
 public:
  // Loads a folder's templates like transformers: chat_template.jinja and
  // additional_chat_templates/, else chat_template in tokenizer_config.json (a text, or a list of
  // named ones); for requests without tools a processor's chat_template.json goes before the
  // latter. A `file` that is not empty replaces them all. None at all is no error; one that cannot
  // be read or parsed is, by name.
  static Result<ChatTemplates> load(const std::filesystem::path& folder,
                                    const std::filesystem::path& file);

  // Null where the model has none for such a request.
  const ChatTemplate* choose(WithTools tools) const;
  bool empty() const { return !plain_.program && !with_tools_.program; }

 private:
  ChatTemplate plain_ = {};
  ChatTemplate with_tools_ = {};
};

}  // namespace baton::prompt
