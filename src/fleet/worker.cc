// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "fleet/worker.h"

#include "scheduling/policy/constraints.h"

namespace baton::fleet {
namespace {

std::vector<std::string> taints_of(const model::WorkerSpec& spec) {
  std::vector<std::string> taints = spec.taints;
  for (const std::string& place : spec.topology)
    taints.push_back(scheduling::topology_taint(place));
  return taints;
}

}  // namespace

Worker::WorkerState::WorkerState(const config::Health& options, std::uint32_t ranks,
                                 Siblings of_kind)
    : health(options), siblings(std::move(of_kind)) {
  using Published = std::shared_ptr<scheduling::PublishedSpeed>;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    const auto& load = loads.emplace_back(
        siblings.loads ? siblings.loads->make() : std::make_shared<scheduling::RankLoad>());
    paces.push_back(
        std::make_unique<scheduling::Pace>(siblings.pace, Published(load, &load->prefill_speed())));
    transfers.push_back(std::make_unique<scheduling::TransferPace>(
        siblings.transfers, Published(load, &load->transfer_speed())));
    batch_limits.push_back(std::make_unique<scheduling::BatchLimit>());
  }
}

Worker::Worker(model::WorkerId id, model::WorkerSpec spec, const config::Health& health,
               const Siblings& siblings)
    : id_(id),
      spec_(std::move(spec)),
      authority_(spec_.endpoint.to_string()),
      number_(std::to_string(id_.value)),
      taints_(taints_of(spec_)),
      state_(std::make_shared<WorkerState>(health, spec_.data_parallel_size, siblings)) {}

Worker::Worker(const Worker& before, model::WorkerSpec spec)
    : id_(before.id_),
      spec_(std::move(spec)),
      authority_(spec_.endpoint.to_string()),
      number_(before.number_),
      taints_(taints_of(spec_)),
      state_(before.state_) {}

bool Worker::is_called(std::string_view text) const {
  return text == name() || text == authority_ || text == number_;
}

std::int64_t Worker::in_flight() const {
  std::int64_t sum = 0;
  for (std::uint32_t rank = 0; rank < ranks(); ++rank) sum += in_flight(rank);
  return sum;
}

EligibilityTier Worker::tier(Time now) const {
  if (draining()) return EligibilityTier::Out;
  switch (condition()) {
    case Condition::Up:
    case Condition::HalfOpen:
      return state_->health.overloaded(now) ? EligibilityTier::Spare : EligibilityTier::Good;
    case Condition::New:
      return EligibilityTier::Spare;
    case Condition::Ejected:
    case Condition::OnTrial:
      return EligibilityTier::Doubtful;
    case Condition::Unreachable:
      return EligibilityTier::Down;
    case Condition::Misconfigured:
      break;
  }
  return EligibilityTier::Out;
}

std::string_view Worker::state(Time now) const {
  if (draining()) return "draining";
  if (condition() == Condition::Up && state_->health.overloaded(now)) return "overloaded";
  return to_string(condition());
}

void Worker::watched_by(std::weak_ptr<Watcher> watcher) {
  const locks::Lock lock(state_->mutex);
  state_->watcher = std::move(watcher);
}

void Worker::tell(const Health::News& news) const {
  if (!news) return;
  std::shared_ptr<Watcher> watcher;
  {
    const locks::Lock lock(state_->mutex);
    watcher = state_->watcher.lock();
  }
  if (watcher) watcher->changed(*this, *news);
}

Booking::Booking(std::shared_ptr<Worker> worker, std::uint32_t rank)
    : Booking(worker, rank,
              std::make_shared<scheduling::LoadLedger>()->book(
                  {worker->id(), rank}, worker->load(rank), {}, Clock::now()),
              nullptr) {}

Booking::Booking(std::shared_ptr<Worker> worker, std::uint32_t rank,
                 scheduling::LoadLedger::Entry entry, std::shared_ptr<LoadNotifier> load_notifier,
                 std::optional<std::uint64_t> computes, std::optional<Expectation> expectation)
    : worker_(std::move(worker)),
      rank_(rank),
      entry_(std::move(entry)),
      load_notifier_(std::move(load_notifier)),
      computes_(computes),
      expectation_(std::move(expectation)) {
  trial_ = worker_->state_->health.begin_trial();
}

Booking::~Booking() {
  if (!worker_) return;
  if (trial_) worker_->state_->health.abandon_trial();
  const Time now = Clock::now();
  if (computes_ && sent_) worker_->pace(rank_).lost(now);
  entry_.free(now);
  if (gaps_) worker_->batch_limit(rank_).forget(now);
  if (load_notifier_) load_notifier_->ring();
}

void Booking::sent() {
  if (std::exchange(sent_, true)) return;
  if (computes_) worker_->pace(rank_).sent(Clock::now());
}

void Booking::prefill_completed(std::optional<std::uint64_t> tokens) {
  const Time now = Clock::now();
  if (computes_ && sent_) worker_->pace(rank_).computed(now, tokens.value_or(*computes_));
  if (computes_ && expectation_) {
    const std::chrono::duration<double> took = now - expectation_->booked;
    expectation_->of->add(expectation_->seconds, took.count(), now);
  }
  computes_.reset();
  entry_.prefill_completed(now);
  // Its end gives waiting requests nothing more, unless they wait for its place in the batch.
  const auto load_notifier = gaps_ ? load_notifier_ : std::exchange(load_notifier_, nullptr);
  if (load_notifier) load_notifier->ring();
}

void Booking::watch_gaps(std::chrono::milliseconds objective) {
  gaps_ =
      std::make_unique<scheduling::TokenGaps>(worker_->batch_limit(rank_), *worker_->load(rank_),
                                              std::chrono::duration<double>(objective).count());
}

void Booking::sample(std::uint64_t tokens) {
  if (gaps_->sample(tokens, Clock::now()) && load_notifier_) load_notifier_->ring();
}

std::chrono::nanoseconds Booking::prefill_due() const {
  const Time now = Clock::now();
  const scheduling::RankLoad& load = *worker_->load(rank_);
  const double modelled = load.prefill_seconds(now);
  const double seconds =
      modelled > 0 ? modelled : worker_->pace(rank_).speed(now).seconds(load.prefill_tokens(now));
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(seconds));
}

Transfer::Transfer(const Booking& booking, std::uint64_t tokens)
    : worker_(booking.worker_), rank_(booking.rank_), tokens_(tokens), begun_(Clock::now()) {}

void Transfer::arrived() {
  const auto worker = std::exchange(worker_, nullptr);
  if (!worker) return;
  const Time now = Clock::now();
  worker->transfers(rank_).took(tokens_, std::chrono::duration<double>(now - begun_).count(), now);
}

}  // namespace baton::fleet
