// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "prompt/rules.h"

#include <fmt/format.h>

namespace baton::prompt {
namespace {

using model::Version;

// vLLM, from its releases' sources and requirements. 0.19.1 to 0.23 run with either major release of
// transformers; an installation without other constraints got the fifth.
constexpr Version kVllmTransformers5{.major = 0, .minor = 19, .patch = 1};
constexpr Version kVllmContentNames{.major = 0, .minor = 22, .patch = 0};
constexpr Version kVllmDeveloper{.major = 0, .minor = 23, .patch = 0};
constexpr Version kVllmPartMembers{.major = 0, .minor = 26, .patch = 0};
constexpr Version kVllmContentMacros{.major = 0, .minor = 30, .patch = 0};
constexpr Version kVllmBillingHeader{.major = 0, .minor = 32, .patch = 0};
// SGLang names one release of transformers in each of its own.
constexpr Version kSglangTransformers5{.major = 0, .minor = 5, .patch = 10};

Rules vllm_rules(Version release) {
  Rules rules;
  if (release < kVllmTransformers5) rules.transformers = tokenizer::Transformers::V4;
  if (release < kVllmContentNames) {
    rules.content_search = ContentSearch::Members;
  } else if (release < kVllmContentMacros) {
    rules.content_search = ContentSearch::Names;
  }
  rules.developer_as_system = release >= kVllmDeveloper;
  rules.keeps_part_members = release >= kVllmPartMembers;
  rules.drops_billing_header = release >= kVllmBillingHeader;
  return rules;
}

}  // namespace

Rules rules_of(model::Engine engine, std::optional<model::Version> release) {
  switch (engine) {
    case model::Engine::Vllm:
      return release ? vllm_rules(*release) : Rules();
    case model::Engine::Sglang: {
      Rules rules;
      if (release && *release < kSglangTransformers5)
        rules.transformers = tokenizer::Transformers::V4;
      rules.texts_in_parts = false;
      rules.developer_as_system = false;
      rules.keeps_part_members = false;
      rules.drops_billing_header = false;
      rules.keeps_unset_variables = true;
      return rules;
    }
    case model::Engine::Trtllm:
      break;
  }
  return {};
}

std::string to_string(const Rules& rules) {
  return fmt::format("transformers {}, developer messages {}",
                     rules.transformers == tokenizer::Transformers::V4 ? 4 : 5,
                     rules.developer_as_system ? "as system" : "as they are");
}

}  // namespace baton::prompt
