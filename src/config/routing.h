// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

// How a model's requests find their workers: the cost of a worker, the bypass of prefill, and the
// queue. The defaults below are those of the reference.
namespace baton::config {

// How prompts that are being computed become less to do.
enum class PrefillLoadModel : std::uint8_t {
  None,      // all at once, when the first token comes
  Measured,  // as time goes by, at the speed that the worker has shown
};

// Weights of the policies kv and load_aware, in KV blocks.
struct Cost {
  double overlap_score_credit = 1.0;  // for a block on the device; 0: caches do not count
  double overlap_score_credit_decay = 0.0;
  double prefill_load_scale = 1.0;
  double decode_active_request_weight = 0.0;
  double host_cache_hit_weight = 0.75;   // 0 to 1
  double disk_cache_hit_weight = 0.25;   // 0 to 1
  double shared_cache_multiplier = 0.0;  // 0 to 1
  double temperature = 0.0;              // 0: the cheapest one
  bool track_prefill_tokens = true;
  PrefillLoadModel prefill_load_model = PrefillLoadModel::None;  // ttft always measures
  bool track_output_blocks = false;
  bool assume_kv_reuse = true;  // false: blocks of prompts with equal beginnings count each
  bool operator==(const Cost&) const = default;
};

// When a decode worker computes the prompt itself.
enum class Bypass : std::uint8_t {
  Never,
  IslBounding,  // little is new
  PrefillLoad,  // prefill is busy
  IslOrLoad,
};

struct ConditionalPrefill {
  Bypass policy = Bypass::Never;
  std::uint64_t max_new_tokens = 2048;           // fewer are little
  double max_new_share = 0.7;                    // of the prompt
  std::optional<double> prefill_busy_threshold;  // of what a worker batches; absent: the queue's
  std::optional<double> decode_busy_threshold;   // of its KV blocks; absent: it does not matter
  bool operator==(const ConditionalPrefill&) const = default;
};

// The service level objective of a model, or of one class of its requests.
struct Slo {
  std::optional<std::chrono::milliseconds> ttft =
      {};                                             // from a request's arrival to its first token
  std::optional<std::chrono::milliseconds> itl = {};  // mean time between the tokens of a stream
  // A request that cannot meet its TTFT waits behind all that can; false: it is refused at once.
  bool queue_late = false;
  bool operator==(const Slo&) const = default;
};

enum class QueueOrder : std::uint8_t { Fcfs, Lcfs, Wspt, Shortest };

// One class of waiting requests.
struct QueueClass {
  std::string name;
  std::string family;  // with `bucket`: the key that selects it; both empty: only by its name
  std::string bucket;
  QueueOrder order = QueueOrder::Fcfs;
  std::uint64_t quantum = 1;  // tokens, each time it is its turn
  // A worker with more prefill tokens than this is busy: so many, or so many times what it batches.
  // Neither: no request of this class waits.
  std::optional<std::uint64_t> busy_tokens;
  std::optional<double> busy_share;
  // For each worker; a request that would cross one is refused. Absent: none.
  std::optional<std::size_t> requests_per_worker;
  std::optional<std::uint64_t> tokens_per_worker;         // of the prompts
  std::optional<std::uint64_t> cached_tokens_per_worker;  // of those, what caches have
  // Also queue a request if its best worker has more than a moment of work left: in the queue it
  // can still go elsewhere.
  bool late = false;
  std::optional<Slo> slo;  // instead of the model's
  bool queues() const { return busy_tokens || busy_share || late; }
  bool operator==(const QueueClass&) const = default;
};

// A prompt with at least `min_tokens` new tokens is in this bucket.
struct QueueBucket {
  std::uint64_t min_tokens = 0;
  std::string name;
  bool operator==(const QueueBucket&) const = default;
};

// The queue of requests while every worker is busy.
struct Queue {
  std::string default_family;  // empty: there are no families, and the first class is for all
  std::vector<QueueBucket> buckets;
  std::vector<QueueClass> classes;        // none: no request waits
  std::chrono::milliseconds patience{0};  // 0: as long as it takes
  // A request whose predicted wait at the current service rate is longer is refused at once; 0:
  // none is. Absent: the policy's default.
  std::optional<std::chrono::milliseconds> longest_wait;
  bool fair_tenants = true;  // tenants share by tokens within a class
  // A prompt whose first this many new tokens are being computed for another request waits for them;
  // 0: it does not. Absent: as the policy wants it.
  std::optional<std::uint64_t> follow_tokens;
  bool operator==(const Queue&) const = default;
};

struct Routing {
  Cost cost;
  ConditionalPrefill conditional;
  Queue queue;
  std::optional<Slo> slo;  // of requests whose class has none
  // The shortest ITL promised to any class: a worker decodes for all of them in the same steps. 0:
  // none is promised.
  std::chrono::milliseconds least_itl() const;
  bool operator==(const Routing&) const = default;
};

}  // namespace baton::config
