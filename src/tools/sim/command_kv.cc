// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
// The flags of KV events.
#include "config/one_of.h"
#include "tools/sim/command.h"

#include <CLI/CLI.hpp>

#include <string>

namespace baton::sim {

void add_kv_flags(CLI::App& sim, Options& options) {
  KvOptions& kv = options.kv;
  sim.add_option("--kv-events", kv.events,
                 "Publish KV events at tcp://HOST:PORT, further ranks on the ports behind it; "
                 "port 0 picks free ones");
  sim.add_option("--kv-ready-file", kv.ready_file,
                 "Written as tcp://HOST:PORT of the first rank's KV events");
  sim.add_option("--kv-replay", kv.replay, "Answer for missed batches at tcp://HOST:PORT");
  sim.add_option("--kv-replay-ready-file", kv.replay_ready_file,
                 "Written as tcp://HOST:PORT of the first rank's replays");
  sim.add_flag("--kv-connect", kv.connect, "Connect to the address of --kv-events: others bind it");
  sim.add_option("--kv-topic", kv.topic,
                 "First frame of a message; {host}, {port} and {model} are filled in [empty]");
  sim.add_option_function<std::string>(
         "--kv-encoding",
         [&kv](const std::string& name) {
           kv.encoding = name == "map" ? KvEncoding::Map : KvEncoding::Array;
         },
         "How events are encoded [by engine and release]")
      ->check(config::one_of({"array", "map"}));
  sim.add_option("--kv-replay-framing", kv.replay_frames,
                 "Frames of a replayed batch, 3 or 4 [by engine and release]")
      ->check(CLI::IsMember({3U, 4U}));
  sim.add_option_function<std::string>(
         "--kv-hash", [&kv](const std::string& name) { kv.hash_bytes = name == "bin"; },
         "Hashes as numbers or as bytes [int]")
      ->check(config::one_of({"int", "bin"}));
  sim.add_option("--kv-hash-seed", kv.hash_seed, "vLLM's PYTHONHASHSEED [random]");
  sim.add_option_function<std::string>(
         "--prefix-caching-hash-algo",
         [&kv](const std::string& name) { kv.hash_pickle = name == "sha256"; },
         "vLLM: what its hashes are of, pickle or CBOR [sha256_cbor]")
      ->check(config::one_of({"sha256", "sha256_cbor"}));
  sim.add_option_function<std::string>(
         "--kv-root-parent",
         [&kv](const std::string& name) { kv.root_parent_zero = name == "zero"; },
         "What a first block has for a parent [nil]")
      ->check(config::one_of({"nil", "zero"}));
  sim.add_option("--kv-first-seq", kv.first_sequence, "Number of the first batch")
      ->capture_default_str();
  sim.add_option("--kv-buffer", kv.buffer,
                 "Batches kept for replay [10000]; TensorRT-LLM: events kept for "
                 "/kv_cache_events, 0 is none [0]")
      ->check(CLI::Range(0U, 1U << 30U));
  sim.add_option_function<std::string>(
         "--decode-cache", [&kv](const std::string& name) { kv.decode_cache = name == "on"; },
         "Whether a decode worker has a prefix cache [vLLM: on, others: off]")
      ->check(config::one_of({"on", "off"}));
  sim.add_option_function<std::string>(
         "--kv-host-events",
         [&kv](const std::string& name) { kv.host_hashes_only = name == "hashes"; },
         "vLLM: whether stores in host memory have their tokens [full]")
      ->check(config::one_of({"full", "hashes"}));
  sim.add_option("--host-blocks", kv.host_blocks,
                 "vLLM and SGLang: KV blocks of each rank in host memory, for what was evicted")
      ->check(CLI::Range(0U, 1U << 28U))
      ->capture_default_str();
}

}  // namespace baton::sim
