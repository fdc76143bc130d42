// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "telemetry/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <stdexcept>
#include <variant>

namespace baton::telemetry {
namespace {

constexpr std::array kDurationBounds{0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01,
                                     0.025,  0.05,    0.1,    0.25,  0.5,    1.0,   2.5,
                                     5.0,    10.0,    30.0,   60.0,  120.0,  300.0, 600.0};

void append(fmt::memory_buffer& out, std::string_view text) { out.append(text); }

// Help texts keep their quotes; label values stand between quotes and may not.
enum class Quotes { Keep, Escape };

void append_escaped(fmt::memory_buffer& out, std::string_view text, Quotes quotes) {
  for (const char c : text) {
    if (c == '\\') {
      append(out, "\\\\");
    } else if (c == '\n') {
      append(out, "\\n");
    } else if (c == '"' && quotes == Quotes::Escape) {
      append(out, "\\\"");
    } else {
      out.push_back(c);
    }
  }
}

// `le` is the bucket's bound, or empty outside buckets.
void append_name(fmt::memory_buffer& out, std::string_view name, std::string_view suffix,
                 const Labels& labels, std::string_view le = {}) {
  append(out, name);
  append(out, suffix);
  if (labels.empty() && le.empty()) return;
  char separator = '{';
  for (const auto& [key, value] : labels) {
    out.push_back(separator);
    append(out, key);
    append(out, "=\"");
    append_escaped(out, value, Quotes::Escape);
    out.push_back('"');
    separator = ',';
  }
  if (!le.empty()) fmt::format_to(std::back_inserter(out), "{}le=\"{}\"", separator, le);
  out.push_back('}');
}

std::string number(double value) {
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);
}

void append_value(fmt::memory_buffer& out, const auto& value) {
  fmt::format_to(std::back_inserter(out), " {}\n", value);
}

void append_series(fmt::memory_buffer& out, std::string_view name, const Labels& labels,
                   const Counter& counter) {
  append_name(out, name, "", labels);
  append_value(out, counter.value());
}

void append_series(fmt::memory_buffer& out, std::string_view name, const Labels& labels,
                   const Gauge& gauge) {
  append_name(out, name, "", labels);
  append_value(out, gauge.value());
}

void append_series(fmt::memory_buffer& out, std::string_view name, const Labels& labels,
                   const Share& share) {
  append_name(out, name, "", labels);
  append_value(out, number(share.value()));
}

void append_series(fmt::memory_buffer& out, std::string_view name, const Labels& labels,
                   const Histogram& histogram) {
  const Histogram::Snapshot snapshot = histogram.snapshot();
  for (std::size_t i = 0; i < snapshot.cumulative.size(); ++i) {
    const bool last = i == snapshot.bounds.size();
    append_name(out, name, "_bucket", labels, last ? "+Inf" : number(snapshot.bounds[i]));
    append_value(out, snapshot.cumulative[i]);
  }
  append_name(out, name, "_sum", labels);
  append_value(out, number(snapshot.sum));
  append_name(out, name, "_count", labels);
  append_value(out, snapshot.count);
}

// Null if it is not to be written any more.
template <class Metric>
const Metric* present(const std::unique_ptr<Metric>& metric) {
  return metric.get();
}
template <class Metric>
std::shared_ptr<Metric> present(const std::weak_ptr<Metric>& metric) {
  return metric.lock();
}
const Counter* present(const Counter* metric) { return metric; }

template <class Metric>
constexpr std::string_view kType = "";
template <>
constexpr std::string_view kType<Counter> = "counter";
template <>
constexpr std::string_view kType<Gauge> = "gauge";
template <>
constexpr std::string_view kType<Share> = "gauge";
template <>
constexpr std::string_view kType<Histogram> = "histogram";

}  // namespace

std::size_t thread_slot() {
  static std::atomic<std::size_t> next{0};
  thread_local const std::size_t slot = next.fetch_add(1, std::memory_order_relaxed) % kSlots;
  return slot;
}

std::uint64_t Counter::value() const {
  std::uint64_t total = 0;
  for (const Slot& slot : slots_) total += slot.value.load(std::memory_order_relaxed);
  return total;
}

// Whole cache lines, so that no two slots share one.
struct Histogram::Slot {
  struct alignas(64) Line {
    std::array<std::atomic<std::uint64_t>, 8> counts{};
  };

  explicit Slot(std::size_t buckets) : lines(buckets / 8 + 1) {}
  std::atomic<std::uint64_t>& count(std::size_t bucket) {
    return lines[bucket / 8].counts[bucket % 8];
  }

  alignas(64) std::atomic<double> sum{0};
  std::vector<Line> lines;
};

Histogram::Histogram(std::span<const double> bounds) : bounds_(bounds.begin(), bounds.end()) {
  slots_.reserve(kSlots);
  for (std::size_t i = 0; i < kSlots; ++i) {
    slots_.push_back(std::make_unique<Slot>(bounds_.size() + 1));
  }
}

Histogram::~Histogram() = default;

void Histogram::observe(double value) {
  if (std::isnan(value)) return;  // one would make the sum useless for good
  const auto bound = std::ranges::lower_bound(bounds_, value);
  Slot& slot = *slots_[thread_slot()];
  slot.count(static_cast<std::size_t>(bound - bounds_.begin()))
      .fetch_add(1, std::memory_order_relaxed);
  slot.sum.fetch_add(value, std::memory_order_relaxed);
}

Histogram::Snapshot Histogram::snapshot() const {
  Snapshot result{.bounds = bounds_, .cumulative = std::vector<std::uint64_t>(bounds_.size() + 1)};
  for (std::size_t bucket = 0; bucket < result.cumulative.size(); ++bucket) {
    for (const auto& slot : slots_) {
      result.count += slot->count(bucket).load(std::memory_order_relaxed);
    }
    result.cumulative[bucket] = result.count;
  }
  for (const auto& slot : slots_) result.sum += slot->sum.load(std::memory_order_relaxed);
  return result;
}

std::span<const double> duration_bounds() { return kDurationBounds; }

struct Registry::Family {
  struct Series {
    Labels labels;
    std::variant<std::unique_ptr<Counter>, std::unique_ptr<Gauge>, std::unique_ptr<Share>,
                 std::unique_ptr<Histogram>, const Counter*, std::weak_ptr<Counter>,
                 std::weak_ptr<Share>>
        metric;
  };

  std::string name;
  std::string_view type;
  std::string help;
  std::vector<Series> series;
  std::function<void(const Emit&)> collect;  // where they come and go
};

Registry::Registry() = default;
Registry::~Registry() = default;

Registry::Family& Registry::family(std::string_view name, std::string_view help,
                                   std::string_view type) {
  const auto at = std::ranges::lower_bound(
      families_, name, {}, [](const auto& known) -> std::string_view { return known->name; });
  if (at != families_.end() && (*at)->name == name) {
    if ((*at)->type != type || (*at)->help != help) {
      throw std::logic_error(fmt::format("metric {} has two types or two help texts", name));
    }
    return **at;
  }
  return **families_.insert(
      at, std::make_unique<Family>(Family{std::string(name), type, std::string(help), {}, {}}));
}

template <class Metric, class... Args>
Metric& Registry::series(std::string_view name, std::string_view help, Labels labels,
                         const Args&... args) {
  const locks::Lock lock(mutex_);
  Family& known = family(name, help, kType<Metric>);
  for (const Family::Series& one : known.series) {
    if (std::ranges::is_permutation(one.labels, labels)) {
      return *std::get<std::unique_ptr<Metric>>(one.metric);
    }
  }
  auto metric = std::make_unique<Metric>(args...);
  Metric& reference = *metric;
  known.series.push_back({std::move(labels), std::move(metric)});
  return reference;
}

template <class Metric>
std::shared_ptr<Metric> Registry::held_series(std::string_view name, std::string_view help,
                                              Labels labels) {
  using Held = std::weak_ptr<Metric>;
  const locks::Lock lock(mutex_);
  Family& known = family(name, help, kType<Metric>);
  for (const Family::Series& one : known.series) {
    if (!std::ranges::is_permutation(one.labels, labels)) continue;
    if (auto metric = std::get<Held>(one.metric).lock()) return metric;
  }
  std::erase_if(known.series, [](const Family::Series& one) {
    const auto* const held = std::get_if<Held>(&one.metric);
    return held != nullptr && held->expired();
  });
  auto metric = std::make_shared<Metric>();
  known.series.push_back({std::move(labels), Held(metric)});
  return metric;
}

Counter& Registry::counter(std::string_view name, std::string_view help, Labels labels) {
  return series<Counter>(name, help, std::move(labels));
}

void Registry::counter(std::string_view name, std::string_view help, const Counter& counted) {
  const locks::Lock lock(mutex_);
  family(name, help, kType<Counter>).series.push_back({{}, &counted});
}

Gauge& Registry::gauge(std::string_view name, std::string_view help, Labels labels) {
  return series<Gauge>(name, help, std::move(labels));
}

Share& Registry::share(std::string_view name, std::string_view help, Labels labels) {
  return series<Share>(name, help, std::move(labels));
}

Histogram& Registry::histogram(std::string_view name, std::string_view help, Labels labels,
                               std::span<const double> bounds) {
  return series<Histogram>(name, help, std::move(labels), bounds);
}

std::shared_ptr<Counter> Registry::held_counter(std::string_view name, std::string_view help,
                                                Labels labels) {
  return held_series<Counter>(name, help, std::move(labels));
}

std::shared_ptr<Share> Registry::held_share(std::string_view name, std::string_view help,
                                            Labels labels) {
  return held_series<Share>(name, help, std::move(labels));
}

void Registry::collect_counts(std::string_view name, std::string_view help,
                              std::function<void(const Emit&)> collect) {
  const locks::Lock lock(mutex_);
  family(name, help, kType<Counter>).collect = std::move(collect);
}

void Registry::collect(std::string_view name, std::string_view help,
                       std::function<void(const Emit&)> collect) {
  const locks::Lock lock(mutex_);
  family(name, help, kType<Gauge>).collect = std::move(collect);
}

std::string Registry::render() const {
  fmt::memory_buffer out;
  const locks::Lock lock(mutex_);
  for (const auto& family : families_) {
    fmt::format_to(std::back_inserter(out), "# HELP {} ", family->name);
    append_escaped(out, family->help, Quotes::Keep);
    fmt::format_to(std::back_inserter(out), "\n# TYPE {} {}\n", family->name, family->type);
    for (const Family::Series& one : family->series) {
      std::visit(
          [&](const auto& metric) {
            if (const auto shown = present(metric))
              append_series(out, family->name, one.labels, *shown);
          },
          one.metric);
    }
    if (!family->collect) continue;
    family->collect([&](const Labels& labels, std::int64_t value) {
      Gauge gauge;
      gauge.set(value);
      append_series(out, family->name, labels, gauge);
    });
  }
  return fmt::to_string(out);
}

std::vector<Registry::Description> Registry::describe() const {
  const locks::Lock lock(mutex_);
  std::vector<Description> result;
  result.reserve(families_.size());
  for (const auto& family : families_) {
    result.push_back({family->name, std::string(family->type), family->help});
  }
  return result;
}

}  // namespace baton::telemetry
