// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "engine/shared/introspection.h"
#include "engine/shared/probe.h"
#include "fuzz/fuzz_input.h"

#include <string>

namespace {

using namespace baton;
using engine::Facts;
using fuzz::require;
using Reader = Result<void> (*)(std::string_view, Facts&);

struct Document {
  const char* name;
  Reader read;
};

constexpr Document kDocuments[] = {{"GET /v1/models", engine::read_model_cards},
                                   {"GET /version", engine::read_version},
                                   {"GET /server_info", engine::read_sglang_server_info},
                                   {"GET /server_info", engine::read_trtllm_server_info},
                                   {"GET /metrics", engine::read_vllm_metrics}};

void check(const Facts& facts) {
  require(!facts.block_size || *facts.block_size > 0, "a block has tokens");
  require(!facts.data_parallel_size || *facts.data_parallel_size > 0, "there is a rank");
  require(!facts.bootstrap_port || *facts.bootstrap_port > 0, "a port is no 0");
  require(!facts.max_total_tokens || *facts.max_total_tokens > 0, "a cache has room");
  require(!facts.kv_events || facts.kv_events->endpoint.port > 0, "events come from a port");
  for (const auto& card : facts.models) require(!card.id.empty(), "a model has a name");

  model::WorkerSpec spec;
  spec.data_parallel_size = 2;
  spec.bootstrap_port = 1;
  spec.role = model::Role::Prefill;
  for (const auto& sentence : engine::contradictions("m", spec, facts))
    require(sentence.find("; ") != sentence.npos, "a contradiction says what to do");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzz::Input input(data, size);
  for (const Document& document : kDocuments) {
    Facts facts;
    if (const auto read = document.read(input.bytes, facts); !read) {
      require(read.error().message().starts_with(document.name), "an error names its document");
    }
    check(facts);
  }
  return 0;
}
