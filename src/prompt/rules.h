// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/tokenizer/tokenizer_release.h"
#include "model/version.h"
#include "model/worker.h"
#include "prompt/content_format.h"

#include <optional>
#include <string>

namespace baton::prompt {

// Differences between engines and their releases in making a prompt from the same request. The
// defaults are those of the newest vLLM that was compared (0.32).
struct Rules {
  // Which major release of transformers reads the tokenizer's files.
  tokenizer::Transformers transformers = tokenizer::Transformers::V5;
  // How it is found out that a template wants content in parts.
  ContentSearch content_search = ContentSearch::Macros;
  // Whether a text becomes a list of one part for a template that wants parts.
  bool texts_in_parts = true;
  // Whether messages of developers become those of the system, all of them merged into one, where
  // the template does not name the role.
  bool developer_as_system = true;
  // Whether a text part keeps members that the engine does not know.
  bool keeps_part_members = true;
  // Whether the attribution line that some clients put before a system message is removed.
  bool drops_billing_header = true;
  // Whether the template sees variables that the request sets to null or "auto".
  bool keeps_unset_variables = false;
  // Whether chats are written with code of the engine's own, whatever the template says.
  bool chats_in_code = false;
  bool operator==(const Rules&) const = default;
};

// The rules of an engine's release; of the newest if the release is unknown. TensorRT-LLM's were
// not compared with its sources.
Rules rules_of(model::Engine engine, std::optional<model::Version> release);

// The rules that decide between releases, in a few words for people.
std::string to_string(const Rules& rules);

}  // namespace baton::prompt
