// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
// Every key there is. The file's parser, --help and the document take theirs from here.
#include "config/load.h"
#include "model/worker.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

namespace baton::config {
namespace {

// "one of round_robin, random, …", made when this is compiled.
constexpr std::size_t kPoliciesSize = [] {
  std::size_t size = 0;
  for (const std::string_view name : model::kPolicyNames) size += name.size() + 2;
  return size;
}();
constexpr auto kPoliciesText = [] {
  std::array<char, 7 + kPoliciesSize> text{};
  char* end = std::ranges::copy(std::string_view("one of "), text.data()).out;
  for (const std::string_view name : model::kPolicyNames) {
    end = std::ranges::copy(name, end).out;
    end = std::ranges::copy(std::string_view(", "), end).out;
  }
  return text;
}();
constexpr std::string_view kPolicies(kPoliciesText.data(), kPoliciesText.size() - 2);

// clang-format off
constexpr std::array kKeys{
    Key{"listen", "--listen", "address", "127.0.0.1:8080", "Address for clients; port 0 picks a free one."},
    Key{"admin", "--admin", "address", "none", "Address for health, readiness, metrics and the admin API; off when absent."},
    Key{"tls.certificate", "--tls.certificate", "string", "none", "PEM file with the certificate chain of the client listener; needs tls.key."},
    Key{"tls.key", "--tls.key", "string", "none", "PEM file with the private key of that certificate; needs tls.certificate."},
    Key{"tls.ciphers", "--tls.ciphers", "string", "ECDHE+AESGCM:ECDHE+CHACHA20", "Ciphers of TLS 1.2, as OpenSSL lists them; those of TLS 1.3 are always there."},
    Key{"api_keys", "", "list", "none", "Keys clients may send as bearer token; without any, no key is needed."},
    Key{"api_keys_file", "--api-keys-file", "string", "none", "File with more API keys, one a line; blank lines and lines that begin with # are left out."},
    Key{"admin_keys", "", "list", "none", "Keys that calls of the admin address must send as bearer token, /health, /ready and /metrics excepted; without any, calls that show or change workers are taken from loopback only."},
    Key{"admin_keys_file", "--admin-keys-file", "string", "none", "File with more of them, one a line, as for api_keys_file."},
    Key{"threads", "--threads", "integer", "0", "I/O threads; 0 means one per core."},
    Key{"cpu_threads", "--cpu-threads", "integer", "0", "Threads that render chat templates and tokenize long prompts; 0 means one for two cores."},
    Key{"decisions", "--decisions", "integer", "1000", "Requests of which it is remembered why they went where they did, for GET /v1/decisions and baton explain; about 8 KiB each."},
    Key{"shutdown_grace", "--shutdown-grace", "duration", "30s", "How long running requests may finish after SIGTERM."},
    Key{"restart_timeout", "--restart-timeout", "duration", "1m", "How long the next process may take to be ready after SIGUSR2, before it is given up."},
    Key{"trust_routing_headers", "--trust-routing-headers", "boolean", "false", "Whether requests may choose their workers, by header or body; otherwise what they say of it is left out."},
    Key{"trusted_sources", "", "list", "every source", "Addresses and networks (10.0.0.0/8) whose requests may; needs trust_routing_headers."},
    Key{"client_handoff_fields", "--client-handoff-fields", "one of strip, refuse", "strip", "Whether hand-off fields in a client's body, which could name another request's KV cache, are removed or refused."},
    Key{"strip_client_fields", "", "list", "none", "Further top-level members of a client's body that no worker gets, as priority or extra_key."},
    Key{"strip_client_headers", "", "list", "none", "Further headers of clients that no worker gets; a name that ends with * stands for all that begin so, as x-sglext-*."},
    Key{"response_headers", "--response-headers", "boolean", "true", "Whether answers say in x-baton- headers which workers served."},
    Key{"overload_status", "--overload-status", "one of as_reported, 429, 503", "as_reported", "Status a client gets where an engine is overloaded."},
    Key{"timeouts.connect", "--timeouts.connect", "duration", "2s", "Connecting to a worker."},
    Key{"timeouts.first_byte", "--timeouts.first-byte", "duration", "5m", "From the request sent to a worker to its first token, or to the beginning of its answer where it is not streamed."},
    Key{"timeouts.idle", "--timeouts.idle", "duration", "1m", "Between two tokens of a worker's stream; of an answer that is not streamed, from its beginning to its end, plus one second for each 16 KiB of it."},
    Key{"timeouts.request", "--timeouts.request", "duration", "0s", "From the end of a client's request head to the end of its answer, whatever is done in between; 0s: as long as it takes."},
    Key{"timeouts.client_header", "--timeouts.client-header", "duration", "10s", "From the first byte of a client's request head to its end."},
    Key{"timeouts.client_body", "--timeouts.client-body", "duration", "30s", "Time for a client's request body to arrive, plus one second for each 64 KiB of it."},
    Key{"timeouts.client_idle", "--timeouts.client-idle", "duration", "75s", "How long a client's connection is kept between two requests."},
    Key{"timeouts.handoff_grace", "--timeouts.handoff-grace", "duration", "5s", "How long a hand-off under way may still take after its client has left, so that no KV block stays pinned; with nixl_push also a prefill whose decode leg has failed."},
    Key{"timeouts.client_write", "--timeouts.client-write", "duration", "1m", "A client that takes nothing of its answer for this long is given up; so is one that was waited for this long in all, and one second more for each 16 KiB that it took meanwhile."},
    Key{"limits.header_bytes", "--limits.header-bytes", "size", "64KiB", "Largest head of a request or an answer."},
    Key{"limits.body_bytes", "--limits.body-bytes", "size", "64MiB", "Largest request body; a larger one is answered with 413."},
    Key{"limits.response_bytes", "--limits.response-bytes", "size", "64MiB", "Largest answer of a worker that is not streamed."},
    Key{"limits.memory", "--limits.memory", "size, auto or none", "auto", "Memory that long bodies, what is made of them, and whole answers may take together; auto is half of the control group's or the machine's."},
    Key{"limits.connections", "--limits.connections", "integer", "10000", "Client connections of the whole process."},
    Key{"limits.client_connections", "--limits.client-connections", "integer", "0", "Connections of one client, by its address."},
    Key{"limits.client_requests", "--limits.client-requests", "integer", "0", "Requests of one client at a time, by its API key or else its address; one more is answered with 429."},
    Key{"limits.client_rate", "--limits.client-rate", "number", "0", "Requests of one client a second, likewise."},
    Key{"limits.client_burst", "--limits.client-burst", "integer", "0", "How many of those may come at once; 0: as many as come in a second. Needs limits.client_rate."},
    Key{"limits.idle_upstreams", "--limits.idle-upstreams", "integer", "256", "Kept-alive connections per worker and thread; 0 keeps none."},
    Key{"limits.token_cache_bytes", "--limits.token-cache-bytes", "size", "64MiB", "Memory for the tokens of texts seen before, for each model."},
    Key{"log.format", "--log.format", "one of json, human", "human", "Log lines for machines or for people."},
    Key{"log.level", "--log.level", "one of debug, info, warning, error", "info", "The least important lines that are still written."},
    Key{"log.requests", "--log.requests", "boolean", "true", "Whether each request gets a line at its end."},
    Key{"trtllm.auth_key_file", "--trtllm.auth-key-file", "string", "none", "File with the internal_request_auth_key of the TensorRT-LLM servers and nothing else: decode legs are signed with it."},
    Key{"trtllm.auth_payload", "--trtllm.auth-payload", "one of fields, params", "fields", "The signed part: ctx_info_endpoint and encoded_opaque_state, or all of disaggregated_params as some releases want."},
    Key{"etcd.endpoints", "--etcd", "list", "none", "The etcd servers that workers are registered at: http://host:port or https://host:port; the flag takes them separated by commas."},
    Key{"etcd.prefix", "--etcd.prefix", "string", "/baton/workers/", "Prefix of the workers' keys."},
    Key{"etcd.user", "--etcd.user", "string", "none", "User name; needs etcd.password_file."},
    Key{"etcd.password_file", "--etcd.password-file", "string", "none", "File with the password of that user and nothing else."},
    Key{"etcd.ca", "--etcd.ca", "string", "none", "PEM file with the authorities that vouch for the etcd servers; without it, those of the system."},
    Key{"etcd.certificate", "--etcd.certificate", "string", "none", "PEM file with the certificate chain shown to the etcd servers; needs etcd.key."},
    Key{"etcd.key", "--etcd.key", "string", "none", "PEM file with the private key of that certificate; needs etcd.certificate."},
    Key{"etcd.timeout", "--etcd.timeout", "duration", "5s", "How long an etcd server may take to accept or answer before the next one is asked."},
    Key{"etcd.linger", "--etcd.linger", "duration", "15s", "How long a worker whose lease has run out keeps serving while its engine answers; so an outage of etcd is not one of the fleet. 0s: not at all."},
    Key{"health.interval", "--health.interval", "duration", "10s", "How often a worker without requests is checked; in a large fleet less often."},
    Key{"health.timeout", "--health.timeout", "duration", "20s", "How long it may take to answer; SGLang generates a token for it."},
    Key{"health.failures", "--health.failures", "integer", "3", "Failed requests in a row (timeouts, server errors, broken streams) after which a worker is ejected; one that cannot be reached is at once."},
    Key{"health.backoff", "--health.backoff", "duration", "1s", "How long an ejected worker waits for its first trial; twice as long for each further one."},
    Key{"health.backoff_max", "--health.backoff-max", "duration", "30s", "The longest such wait."},
    Key{"canary.idle", "--canary.idle", "duration", "none", "How long a worker may go without a success before it gets a tiny real request; without it there is no canary."},
    Key{"canary.timeout", "--canary.timeout", "duration", "3s", "How long that request may take."},
    Key{"canary.failures", "--canary.failures", "integer", "3", "Failed ones in a row after which the worker is ejected."},
    Key{"probe.enabled", "--probe.enabled", "boolean", "true", "Whether a worker is asked at registration what it is, and refused where that contradicts what was said of it."},
    Key{"probe.self_test", "--probe.self-test", "boolean", "false", "Whether a prefill and a decode worker must first pass one tiny hand-off."},
    Key{"kv_index.source", "--kv-index.source", "one of auto, events, decisions, off", "auto", "How Baton knows what workers' KV caches hold: events where they come and else its own decisions, only events, only decisions, or not at all."},
    Key{"kv_index.blocks", "--kv-index.blocks", "integer", "16000000", "KV blocks remembered at once, of all workers; about 33 bytes each, and 16 for every further worker that has it."},
    Key{"kv_index.decision_ttl", "--kv-index.decision-ttl", "duration", "2m", "Without events: how long a worker is believed to keep what it was sent, from its last use."},
    Key{"kv_index.prediction_ttl", "--kv-index.prediction-ttl", "duration", "5s", "With events: how long a worker is believed to be about to store what it was sent; 0s: not at all."},
    Key{"kv_index.silence", "--kv-index.silence", "duration", "30s", "How long a worker that serves requests may send no event before Baton goes by decisions for it, and says so."},
    Key{"kv_index.snapshot", "--kv-index.snapshot", "string", "none", "File that what is known is kept in, so that a restarted Baton need not learn it again."},
    Key{"kv_index.snapshot_interval", "--kv-index.snapshot-interval", "duration", "1m", "How often that file is written."},
    Key{"models", "", "list", "none", "The models served, besides those that workers bring; --worker adds to them."},
    Key{"models[].name", "", "string", "required", "Name that clients put in \"model\"."},
    Key{"models[].aliases", "", "list", "none", "Further names for the same model."},
    Key{"models[].adapters", "", "list", "none", "Adapters (LoRA) that any of its workers loads when asked for one, as requests name them; those that workers have loaded already are found without."},
    Key{"models[].policy", "", kPolicies, "ttft", "How a worker is chosen for a request."},
    Key{"models[].prefill_policy", "", kPolicies, "policy", "How a prefill worker is chosen, where that differs."},
    Key{"models[].decode_policy", "", kPolicies, "policy", "How a decode worker is chosen, where that differs."},
    Key{"models[].disaggregation", "", "one of auto, required, off", "auto", "Whether prefill runs on workers of its own: where there are any, always, or never."},
    Key{"models[].on_prefill_failure", "", "one of retry, fallback, fail", "retry", "After a failed prefill: another prefill worker; that, then a decode worker alone; or an error at once."},
    Key{"models[].retries", "", "integer", "2", "Further attempts at a request before its first token."},
    Key{"models[].migration", "", "integer", "0", "Further attempts after the first token, continuing the stream on another worker."},
    Key{"models[].affinity.ttl", "", "duration", "none", "How long a session stays with its workers after its last request ended; without it there is no affinity."},
    Key{"models[].affinity.sessions", "", "integer", "100000", "Sessions remembered at once, for prefill and for decode."},
    Key{"models[].affinity.body_fields", "", "list", "none", "Body fields that name the session where no header does: session_id, user or both."},
    Key{"models[].tokenizer", "", "string", "none", "Folder with the model's tokenizer.json (or a tiktoken file), tokenizer_config.json and chat template, as on the Hugging Face hub."},
    Key{"models[].chat_template", "", "string", "that of the folder", "File with another chat template (Jinja); the one the engines were given with --chat-template."},
    Key{"models[].tokenize", "", "one of local, engine, off", "local with a tokenizer, else off", "Where prompts are turned into token ids: by Baton, by a worker, or not at all; then requests go by load alone."},
    Key{"models[].send_token_ids", "", "one of auto, always, never", "auto", "Whether workers get those ids, so that they need not tokenize again; auto: where the engine and its version take them."},
    Key{"models[].cost.overlap_score_credit", "", "number", "1", "Policy kv: what a block that a worker has on its device is worth, in blocks to compute."},
    Key{"models[].cost.overlap_score_credit_decay", "", "number", "0", "How fast that credit shrinks for a worker that has more to do than the others."},
    Key{"models[].cost.prefill_load_scale", "", "number", "1", "Weight of a block to compute against a block in use."},
    Key{"models[].cost.decode_active_request_weight", "", "number", "0", "Weight of a running request, in blocks."},
    Key{"models[].cost.host_cache_hit_weight", "", "number", "0.75", "Worth of a block in a worker's host memory, against one on its device."},
    Key{"models[].cost.disk_cache_hit_weight", "", "number", "0.25", "The same for disk and for storage outside."},
    Key{"models[].cost.temperature", "", "number", "0", "0 takes the cheapest worker; more spreads requests over the costlier ones."},
    Key{"models[].cost.track_prefill_tokens", "", "boolean", "true", "Whether prompts being computed count as load."},
    Key{"models[].cost.prefill_load_model", "", "one of none, measured", "none", "How prompts being computed become less to do: all at once when the first token comes, or as time goes by, at the speed the worker has shown. Policy ttft always measures."},
    Key{"models[].cost.track_output_blocks", "", "boolean", "false", "Whether the blocks of answers count as they grow."},
    Key{"models[].cost.assume_kv_reuse", "", "boolean", "true", "Whether prompts that begin alike count their common blocks once."},
    Key{"models[].conditional_prefill.policy", "", "one of never, isl_bounding, prefill_load, isl_or_load", "never", "When a decode worker computes a prompt itself: never, where little of it is new to that worker, where prefill is busy, or either."},
    Key{"models[].conditional_prefill.max_new_tokens", "", "integer", "2048", "Little: fewer new tokens than this …"},
    Key{"models[].conditional_prefill.max_new_share", "", "number", "0.7", "… and less than this share of the prompt."},
    Key{"models[].conditional_prefill.prefill_busy_threshold", "", "number", "the queue's", "Busy: more tokens to compute than this many times what the prefill worker batches."},
    Key{"models[].conditional_prefill.decode_busy_threshold", "", "number", "none", "The decode worker stays below this share of its KV blocks, the request included, or the prompt goes to a prefill worker after all."},
    Key{"models[].queue.busy_threshold", "", "number", "none", "Requests wait while each worker they could go to has more tokens to compute than this many times what it batches; without this and busy_tokens no request waits."},
    Key{"models[].queue.busy_tokens", "", "integer", "none", "The same as a number of tokens."},
    Key{"models[].queue.order", "", "one of fcfs, lcfs, wspt, shortest", "fcfs", "The request that is next: the first that came, the last, the one with least to compute for its waiting, or the one with least to compute unless another has waited long."},
    Key{"models[].queue.requests_per_worker", "", "integer", "none", "Waiting requests for each worker; one more is refused."},
    Key{"models[].queue.tokens_per_worker", "", "integer", "none", "Prompt tokens waiting for each worker; a request that would cross that is refused."},
    Key{"models[].queue.cached_tokens_per_worker", "", "integer", "none", "The same for tokens that caches have."},
    Key{"models[].queue.patience", "", "duration", "none", "How long a request waits before it is refused; 0s: as long as it takes."},
    Key{"models[].queue.longest_wait", "", "duration", "0s", "A request that would have to wait longer, as the queue is served now, is refused at once; a quarter of that while too much comes, but always eight times what its own prompt takes. 0s: none is."},
    Key{"models[].queue.fair_tenants", "", "boolean", "true", "Whether tenants (x-tenant-id, or API keys) get equal shares of tokens within a class."},
    Key{"models[].queue.follow_tokens", "", "integer", "1024 with policy ttft, else 0", "A prompt of which this many new tokens are being computed for another request waits for that one; 0: it does not."},
    Key{"models[].queue.default_family", "", "string", "none", "The family of requests that name none in x-baton-meta-policy-class."},
    Key{"models[].queue.buckets", "", "list", "none", "Prompts by their new tokens; the first begins at 0."},
    Key{"models[].queue.buckets[].name", "", "string", "required", "Name by which classes refer to it."},
    Key{"models[].queue.buckets[].min_tokens", "", "integer", "0", "From so many new tokens on."},
    Key{"models[].queue.classes", "", "list", "one for all", "Classes of requests that wait apart and take turns."},
    Key{"models[].queue.classes[].name", "", "string", "required", "Name in requests, metrics and errors."},
    Key{"models[].queue.classes[].family", "", "string", "none", "With bucket: which requests are of this class; without, those that name it."},
    Key{"models[].queue.classes[].bucket", "", "string", "none", "One of buckets."},
    Key{"models[].queue.classes[].quantum", "", "integer", "1", "New tokens that it may begin each time it is its turn."},
    Key{"models[].queue.classes[].order", "", "one of fcfs, lcfs, wspt, shortest", "fcfs", "As for the queue."},
    Key{"models[].queue.classes[].busy_threshold", "", "number", "none", "As for the queue."},
    Key{"models[].queue.classes[].busy_tokens", "", "integer", "none", "As for the queue."},
    Key{"models[].queue.classes[].requests_per_worker", "", "integer", "none", "As for the queue."},
    Key{"models[].queue.classes[].tokens_per_worker", "", "integer", "none", "As for the queue."},
    Key{"models[].queue.classes[].cached_tokens_per_worker", "", "integer", "none", "As for the queue."},
    Key{"models[].queue.classes[].slo.ttft", "", "duration", "the model's", "Its own objective instead of the model's, if any of the three is given."},
    Key{"models[].queue.classes[].slo.itl", "", "duration", "the model's", "Likewise."},
    Key{"models[].queue.classes[].slo.when_late", "", "one of refuse, queue", "refuse", "Likewise."},
    Key{"models[].slo.ttft", "", "duration", "none", "Objective: the first token comes within this time of the request's arrival. A request that cannot have it in time is refused at once; needs policy ttft, or a queue."},
    Key{"models[].slo.itl", "", "duration", "none", "Objective: the tokens of a stream come on average at most so far apart. No worker gets more requests to decode than it has shown it can, as long as another one can."},
    Key{"models[].slo.when_late", "", "one of refuse, queue", "refuse", "Handling of a request that cannot have its first token in time: refuse answers 503 with Retry-After, queue lets it wait behind all that can."},
    Key{"models[].workers", "", "list", "none", "The engine servers of the model, besides those that register elsewhere."},
    Key{"models[].workers[].url", "", "string", "required", "Address of the engine server: http://host:port."},
    Key{"models[].workers[].engine", "", "one of vllm, sglang, trtllm", "vllm", "Which engine it runs."},
    Key{"models[].workers[].role", "", "one of prefill, decode, aggregated", "aggregated", "Which part of a request it takes; aggregated takes both."},
    Key{"models[].workers[].bootstrap_port", "", "integer", "asked of the engine", "Port at which decode workers meet an SGLang or Mooncake prefill worker."},
    Key{"models[].workers[].id", "", "string", "host:port", "Name in requests and answers."},
    Key{"models[].workers[].namespace", "", "string", "default", "Prefill and decode workers hand over only within one."},
    Key{"models[].workers[].instance", "", "string", "none", "Which run of the engine it is; another one at the same address is another worker."},
    Key{"models[].workers[].handoff", "", "one of nixl_pull, nixl_push, mooncake, bootstrap, context_first, generation_first", "by engine", "How KV caches get from prefill to decode."},
    Key{"models[].workers[].data_parallel_size", "", "integer", "1", "Data-parallel ranks behind the one address."},
    Key{"models[].workers[].taints", "", "list", "none", "Labels that a request may require or prefer."},
    Key{"models[].workers[].topology", "", "list", "none", "Location of the worker, as domain=value: rack=r7."},
    Key{"models[].workers[].transfer_domain", "", "string", "none", "The domain of topology that KV caches of this prefill worker should not leave."},
    Key{"models[].workers[].transfer_enforcement", "", "one of required, preferred", "required", "Whether that domain is a condition or a preference."},
    Key{"models[].workers[].transfer_weight", "", "number", "none", "How much the preference counts; only with preferred."},
    Key{"models[].workers[].kv_events", "", "string", "asked of the engine", "Source of its KV events: tcp://host:port of its first rank, each further one has the next port; with * for host Baton binds and the engine connects. off: it is not listened to."},
    Key{"models[].workers[].kv_replay", "", "string", "none", "Source of missed events: tcp://host:port of its first rank."},
    Key{"models[].workers[].kv_topic", "", "string", "all", "Prefix of the topic of its events."},
    Key{"models[].workers[].block_size", "", "integer", "asked of the engine", "Tokens in a block of its KV cache."},
    Key{"models[].workers[].kv_blocks", "", "integer", "unknown", "KV blocks that each of its ranks has."},
    Key{"models[].workers[].max_batched_tokens", "", "integer", "8192", "Tokens that a rank computes in one step: what busy_threshold is a multiple of."},
    Key{"models[].workers[].nixl.engine_id", "", "string", "asked of the engine", "NIXL push: the engine id of a prefill worker."},
    Key{"models[].workers[].nixl.side_channel", "", "address", "asked of the engine", "NIXL push: where its side channel listens."},
    Key{"models[].workers[].nixl.tensor_parallel_size", "", "integer", "1", "NIXL push: its tensor-parallel size."},
    Key{"models[].workers[].nixl.pipeline_parallel_size", "", "integer", "1", "NIXL push: its pipeline-parallel size."},
};
// clang-format on

}  // namespace

std::span<const Key> keys() { return kKeys; }

}  // namespace baton::config
