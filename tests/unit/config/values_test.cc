// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "config/values.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace baton::config {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

TEST(Duration, IsAWholeNumberAndAUnit) {
  EXPECT_EQ(parse_duration("500ms"), 500ms);
  EXPECT_EQ(parse_duration("2s"), 2s);
  EXPECT_EQ(parse_duration("1m"), 60s);
  EXPECT_EQ(parse_duration("24h"), 24h);
}

TEST(Duration, WithoutAUnitIsRefusedWithAHint) {
  EXPECT_THAT(parse_duration("30").error(), HasSubstr("write 30ms, 30s or 30m"));
}

TEST(Duration, OutsideItsRangeIsRefused) {
  EXPECT_THAT(parse_duration("0s").error(), HasSubstr("above zero"));
  EXPECT_THAT(parse_duration("-1s").error(), HasSubstr("above zero"));
  EXPECT_THAT(parse_duration("25h").error(), HasSubstr("longer than a day"));
  EXPECT_THAT(parse_duration("99999999999999999999h").error(), HasSubstr("longer than a day"));
  EXPECT_THAT(parse_duration("18446744073709551615m").error(), HasSubstr("longer than a day"));
}

TEST(Duration, OfAnotherShapeIsRefused) {
  for (const char* text : {"", "s", "1.5s", "1 s", "1S", "1d", " 1s", "1s ", "+1s", "1s2"}) {
    EXPECT_FALSE(parse_duration(text)) << text;
  }
}

TEST(Size, IsBytesOrHasABinaryUnit) {
  EXPECT_EQ(parse_size("4096"), 4096u);
  EXPECT_EQ(parse_size("64KiB"), 65536u);
  EXPECT_EQ(parse_size("8MiB"), 8u << 20);
  EXPECT_EQ(parse_size("1024GiB"), 1ULL << 40);
}

TEST(Size, OfAnotherShapeOrOutsideItsRangeIsRefused) {
  for (const char* text : {"", "0", "-1", "64KB", "64kib", "1.5MiB", "KiB", "1025GiB",
                           "99999999999999999999", "18446744073709551615GiB"}) {
    EXPECT_FALSE(parse_size(text)) << text;
  }
  EXPECT_THAT(parse_size("64KB").error(), HasSubstr("64KiB"));
}

TEST(Number, IsWholeAndInItsRange) {
  EXPECT_EQ(parse_number("0", 0, 4), 0u);
  EXPECT_EQ(parse_number("4", 0, 4), 4u);
  for (const char* text : {"", "5", "-1", "1.0", "0x1", "1 ", "99999999999999999999"}) {
    EXPECT_FALSE(parse_number(text, 0, 4)) << text;
  }
}

TEST(ListenAddress, IsHostAndPort) {
  EXPECT_EQ(parse_listen_address("127.0.0.1:8080"), (model::Endpoint{"127.0.0.1", 8080}));
  EXPECT_EQ(parse_listen_address("localhost:0"), (model::Endpoint{"localhost", 0}));
  EXPECT_EQ(parse_listen_address("[::]:65535"), (model::Endpoint{"::", 65535}));
}

TEST(ListenAddress, OfAnotherShapeIsRefused) {
  for (const char* text : {"", "8080", "host", "host:", "host:65536", "host:x", "::1:80", "[::1]",
                           "[::1]80", "[::1:80", "[zz]:80", "[]:80", "256.0.0.1:80", "1.2.3:80",
                           "a b:80", "http://a:80", "a/b:80"}) {
    EXPECT_FALSE(parse_listen_address(text)) << text;
  }
  EXPECT_THAT(parse_listen_address(":8080").error(), HasSubstr("write 0.0.0.0:8080"));
  EXPECT_THAT(parse_listen_address("::1:80").error(), HasSubstr("brackets"));
}

TEST(WorkerUrl, IsHttpHostAndPort) {
  EXPECT_EQ(parse_worker_url("http://gpu-1:9001"), (model::Endpoint{"gpu-1", 9001}));
  EXPECT_EQ(parse_worker_url("http://[::1]:9001/"), (model::Endpoint{"::1", 9001}));
}

TEST(WorkerUrl, OneServerHasOneSpelling) {
  EXPECT_EQ(parse_worker_url("http://GPU-1:9001"), parse_worker_url("http://gpu-1:9001"));
  EXPECT_EQ(parse_worker_url("http://[0:0::0:1]:9001"), parse_worker_url("http://[::1]:9001"));
}

TEST(WorkerUrl, OfAnotherShapeIsRefused) {
  for (const char* text : {"", "gpu:9001", "http://", "http://gpu", "http://gpu:0", "http://:9001",
                           "ftp://gpu:1", "HTTP//gpu:1"}) {
    EXPECT_FALSE(parse_worker_url(text)) << text;
  }
  EXPECT_THAT(parse_worker_url("https://gpu:1").error(), HasSubstr("write http://host:port"));
  EXPECT_THAT(parse_worker_url("http://gpu:1/v1").error(), HasSubstr("must end after the port"));
  EXPECT_THAT(parse_worker_url("http://gpu:1?x").error(), HasSubstr("must end after the port"));
  EXPECT_THAT(parse_worker_url("http://me:pw@gpu:1").error(), Not(HasSubstr("pw")));
}

TEST(Name, IsVisibleText) {
  EXPECT_EQ(parse_name("org/model 7B"), "org/model 7B");
  for (const char* text : {"", " a", "a ", "a\nb"}) EXPECT_FALSE(parse_name(text)) << text;
}

TEST(Shown, IsShortAndHarmless) {
  EXPECT_EQ(shown("a\nb\x1b[2J"), "'a?b?[2J'");
  EXPECT_LT(shown(std::string(1000, 'x')).size(), 80u);
}

TEST(Nearest, FindsTheMistypedWordOrNothing) {
  constexpr std::array<std::string_view, 3> kWords{"prefill", "decode", "aggregated"};
  EXPECT_EQ(nearest("prefil", kWords), "prefill");
  EXPECT_EQ(nearest("Decode", kWords), "decode");
  EXPECT_EQ(nearest("agregatted", kWords), "aggregated");
  EXPECT_EQ(nearest("both", kWords), "");
  EXPECT_EQ(nearest("", kWords), "");
  EXPECT_EQ(nearest(std::string(100'000, 'x'), kWords), "");
}

TEST(Nearest, TwoLettersSwappedAreOneMistake) {
  constexpr std::array<std::string_view, 2> kWords{"add", "drain"};
  EXPECT_EQ(nearest("drian", kWords), "drain");
  EXPECT_EQ(nearest("Drani", kWords), "drain");
  EXPECT_EQ(nearest("adn", kWords), "add");
  EXPECT_EQ(nearest("nidra", kWords), "");
}

TEST(Nearest, TakesTheOnlyWordThatBeginsWithTheText) {
  constexpr std::array<std::string_view, 3> kWords{"version", "verbose-errors", "warmup"};
  EXPECT_EQ(nearest("vers", kWords), "version");
  EXPECT_EQ(nearest("ver", kWords), "");
  EXPECT_EQ(nearest("w", kWords), "");
}

TEST(Values, ADurationMayBeZeroWhereThatMeansSomething) {
  EXPECT_EQ(parse_duration_or_zero("0s"), std::chrono::milliseconds(0));
  EXPECT_EQ(parse_duration_or_zero("2s"), std::chrono::milliseconds(2000));
  for (const char* text : {"0", "-1s", "25h", "x", ""}) {
    EXPECT_FALSE(parse_duration_or_zero(text)) << text;
  }
}

TEST(Values, AServerUrlSaysWhetherItIsTls) {
  const auto plain = parse_server_url("http://Host:1");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->endpoint, (model::Endpoint{"host", 1}));
  EXPECT_FALSE(plain->tls);
  const auto tls = parse_server_url("https://[::1]:2/");
  ASSERT_TRUE(tls);
  EXPECT_EQ(tls->endpoint, (model::Endpoint{"::1", 2}));
  EXPECT_TRUE(tls->tls);
  for (const char* text : {"host:1", "http://host", "https://host:1/v3", "https://u:p@host:1"}) {
    EXPECT_FALSE(parse_server_url(text)) << text;
  }
}

// What is wrong with a value, in the words that its author gets.
struct Wrong {
  std::string_view text;
  std::string_view message;
};

template <class Parse>
void expect_messages(Parse parse, const std::vector<Wrong>& all) {
  for (const auto& [text, message] : all) {
    const auto value = parse(text);
    ASSERT_FALSE(value) << text;
    EXPECT_EQ(value.error(), message) << text;
  }
}

TEST(Duration, SaysWhatIsWrongAndShowsTheText) {
  expect_messages(
      parse_duration,
      {{"7", "'7' has no unit; write 7ms, 7s or 7m"},
       {"0", "'0' has no unit; write 0ms, 0s or 0m"},
       {"0ms", "'0ms' must be above zero"},
       {"-5s", "'-5s' must be above zero"},
       {"1d", "'1d' is not a duration; write a whole number and a unit: 500ms, 2s, 1m or 1h"},
       {"", "'' is not a duration; write a whole number and a unit: 500ms, 2s, 1m or 1h"},
       {"1441m", "'1441m' is longer than a day; write 24h or less"}});
  expect_messages(parse_duration_or_zero, {{"-5s", "'-5s' must not be below zero"}});
}

TEST(Duration, EndsAtADayInEveryUnit) {
  for (const auto& [most, above] :
       std::vector<std::pair<std::string_view, std::string_view>>{{"86400000ms", "86400001ms"},
                                                                  {"86400s", "86401s"},
                                                                  {"1440m", "1441m"},
                                                                  {"24h", "25h"}}) {
    EXPECT_EQ(parse_duration(most), 24h) << most;
    EXPECT_FALSE(parse_duration(above)) << above;
  }
  EXPECT_EQ(parse_duration("1ms"), 1ms);
}

TEST(Duration, LeadingZerosDoNotCount) {
  EXPECT_THAT(parse_duration("0000000000000000000000000000000s").error(),
              HasSubstr("must be above zero"));
  EXPECT_EQ(parse_duration("007s"), 7s);
  EXPECT_EQ(parse_duration_or_zero("000ms"), 0ms);
}

TEST(Duration, IsTheProductOfNumberAndUnit) {
  std::mt19937 random(3);
  const std::vector<std::pair<std::string_view, std::uint64_t>> units{
      {"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}};
  for (int round = 0; round < 2000; ++round) {
    const auto& [unit, factor] = units[random() % units.size()];
    const std::uint64_t number = random() % 100'000'000;
    const std::uint64_t expected = number * factor;
    const auto value = parse_duration_or_zero(fmt::format("{}{}", number, unit));
    ASSERT_EQ(value.has_value(), expected <= 86'400'000) << number << unit;
    if (value) ASSERT_EQ(static_cast<std::uint64_t>(value->count()), expected);
  }
}

TEST(Size, SaysWhatIsWrongAndShowsTheText) {
  expect_messages(parse_size,
                  {{"0KiB", "'0KiB' must be above zero"},
                   {"-1MiB", "'-1MiB' must be above zero"},
                   {"1MB", "'1MB' is not a size; write bytes (65536) or 64KiB, 8MiB, 1GiB"},
                   {"1TiB", "'1TiB' is not a size; write bytes (65536) or 64KiB, 8MiB, 1GiB"},
                   {"1099511627777", "'1099511627777' is more than 1024GiB"},
                   {"1048577MiB", "'1048577MiB' is more than 1024GiB"}});
}

TEST(Size, HasTheSameMostInEveryUnit) {
  for (const char* most : {"1099511627776", "1073741824KiB", "1048576MiB", "1024GiB"}) {
    EXPECT_EQ(parse_size(most), 1ULL << 40) << most;
  }
  EXPECT_EQ(parse_size("1"), 1U);
}

TEST(Number, NamesTheTextAndTheRange) {
  const auto from_two_to_nine = [](std::string_view text) { return parse_number(text, 2, 9); };
  expect_messages(from_two_to_nine, {{"1", "'1' is not a whole number from 2 to 9"},
                                     {"10", "'10' is not a whole number from 2 to 9"},
                                     {"-3", "'-3' is not a whole number from 2 to 9"},
                                     {"+3", "'+3' is not a whole number from 2 to 9"},
                                     {"three", "'three' is not a whole number from 2 to 9"}});
  constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max();
  EXPECT_EQ(parse_number("18446744073709551615", 0, kMost), kMost);
  EXPECT_FALSE(parse_number("18446744073709551616", 0, kMost));
  EXPECT_EQ((number_within<2, 9>("9")), 9U);
  EXPECT_FALSE((number_within<2, 9>("10")));
}

TEST(Boolean, IsOneOfTwoWords) {
  EXPECT_EQ(parse_boolean("true"), true);
  EXPECT_EQ(parse_boolean("false"), false);
  for (const char* text : {"", "True", "yes", "on", "1", "0", "true "}) {
    ASSERT_FALSE(parse_boolean(text)) << text;
    EXPECT_EQ(parse_boolean(text).error(), fmt::format("'{}' is neither true nor false", text));
  }
}

TEST(Port, IsNeverZero) {
  EXPECT_EQ(parse_port("1"), 1);
  EXPECT_EQ(parse_port("65535"), 65535);
  expect_messages(parse_port, {{"0", "'0' is not a whole number from 1 to 65535"},
                               {"65536", "'65536' is not a whole number from 1 to 65535"}});
}

TEST(ListenAddress, SaysWhatIsWrongWithIt) {
  expect_messages(
      parse_listen_address,
      {{"8080", "has no port; write host:port"},
       {":8080",
        "has no host; write 0.0.0.0:8080 for every address, 127.0.0.1:8080 for this "
        "machine"},
       {":", "port '' is not a number from 0 to 65535"},
       {":x", "port 'x' is not a number from 0 to 65535"},
       {"h:65536", "port '65536' is not a number from 0 to 65535"},
       {"[::1]", "has no port; write [address]:port"},
       {"[::1:80", "has no ']' after the IPv6 address"},
       {"::1:80", "has more than one ':'; write an IPv6 address in brackets, [::1]:port"},
       {"[::zz]:80", "'::zz' is not an IPv6 address"},
       {"1.2.3.400:80", "'1.2.3.400' is not an IPv4 address"},
       {"a b:80", "'a b' is not a host name or an address"},
       {"tcp://h:80", "write host:port, without a scheme"}});
}

TEST(ListenAddress, AHostNameHasItsLengthAndLetters) {
  const std::string longest(253, 'a');
  EXPECT_EQ(parse_listen_address(longest + ":1"), (model::Endpoint{longest, 1}));
  EXPECT_FALSE(parse_listen_address(longest + "a:1"));
  EXPECT_EQ(parse_listen_address("My_Host-1.Example:1"), (model::Endpoint{"my_host-1.example", 1}));
  EXPECT_FALSE(parse_listen_address("h\xc3\xb6st:1"));
}

TEST(PeerAddress, HasAPortToConnectTo) {
  EXPECT_EQ(parse_peer_address("[0:0::1]:5600"), (model::Endpoint{"::1", 5600}));
  expect_messages(parse_peer_address, {{"h:0", "port '0' is not a number from 1 to 65535"},
                                       {"http://h:1", "write host:port, without a scheme"},
                                       {":1", "has no host before the port"}});
}

TEST(WorkerUrl, SaysWhatIsWrongWithIt) {
  expect_messages(parse_worker_url,
                  {{"gpu:1", "'gpu:1' must be http://host:port"},
                   {"https://gpu:1",
                    "https:// to workers is not available in this version; write http://host:port"},
                   {"http://gpu", "has no port; write host:port"},
                   {"http://u:p@gpu:1", "must not hold a user or password"},
                   {"http://gpu:1//",
                    "'http://gpu:1//' must end after the port; the path is chosen by request"},
                   {"http://gpu:1#a",
                    "'http://gpu:1#a' must end after the port; the path is chosen by "
                    "request"}});
}

TEST(ServerUrl, SaysWhichSchemesThereAre) {
  expect_messages(parse_server_url,
                  {{"h:1", "'h:1' must be http://host:port or https://host:port"},
                   {"HTTPS://h:1", "'HTTPS://h:1' must be http://host:port or https://host:port"},
                   {"https://", "has no port; write host:port"}});
}

TEST(Name, SaysWhatIsWrongWithIt) {
  expect_messages(parse_name,
                  {{"", "must not be empty"},
                   {" a", "' a' must not have control characters, or blanks at its ends"},
                   {"a\tb", "'a?b' must not have control characters, or blanks at its ends"},
                   {"a\x7f", "'a?' must not have control characters, or blanks at its ends"}});
  EXPECT_EQ(parse_name("Größe 7"), "Größe 7");
}

TEST(WorkerId, StandsInAHeader) {
  EXPECT_EQ(parse_worker_id("!~"), "!~");  // the ends of what is visible
  EXPECT_EQ(parse_worker_id(std::string(256, 'x')), std::string(256, 'x'));
  expect_messages(parse_worker_id, {{"", "must not be empty"},
                                    {"a b", "'a b' must be visible ASCII without blanks"},
                                    {"a\n", "'a?' must be visible ASCII without blanks"},
                                    {"ä", "'ä' must be visible ASCII without blanks"}});
  EXPECT_EQ(parse_worker_id(std::string(257, 'x')).error(),
            "'" + std::string(60, 'x') + "…' is longer than 256 bytes");
}

TEST(Network, IsAnAddressOrABlockOfThem) {
  for (const char* text : {"10.0.0.1", "10.0.0.0/8", "0.0.0.0/0", "fd00::/8", "::1", "::1/128"}) {
    EXPECT_TRUE(parse_network(text)) << text;
  }
  for (const char* text :
       {"", "10.0.0.1/8", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/", "fd00::1/8", "::/129", "h"}) {
    const auto network = parse_network(text);
    ASSERT_FALSE(network) << text;
    EXPECT_THAT(network.error(), testing::StartsWith(fmt::format("'{}' is not an address", text)));
  }
}

TEST(Fraction, IsADecimalUpToItsMost) {
  const auto up_to_two = [](std::string_view text) { return parse_fraction(text, 2); };
  EXPECT_EQ(up_to_two("0"), 0.0);
  EXPECT_EQ(up_to_two("2"), 2.0);
  EXPECT_EQ(up_to_two("0.125"), 0.125);
  EXPECT_EQ(up_to_two("2.000"), 2.0);
  for (const char* text :
       {"", "-0.1", "2.0001", "1e0", "0x1", "nan", "inf", "-inf", "1,5", " 1", "1 ", "+1"}) {
    ASSERT_FALSE(up_to_two(text)) << text;
    EXPECT_EQ(up_to_two(text).error(), fmt::format("'{}' is not a number from 0 to 2", text));
  }
}

TEST(Weight, IsAboveZero) {
  EXPECT_EQ(parse_weight("0.0001"), 0.0001);
  EXPECT_EQ(parse_weight("100"), 100.0);
  for (const char* text : {"0", "0.0", "-0", "100.1", "nan", ""}) {
    ASSERT_FALSE(parse_weight(text)) << text;
    EXPECT_EQ(parse_weight(text).error(),
              fmt::format("'{}' is not a number above 0 and up to 100", text));
  }
}

TEST(ZmqEndpoint, IsTcpOrIpc) {
  for (const char* text : {"tcp://h:1", "tcp://*:65535", "tcp://[::1]:5557", "tcp://0.0.0.0:1",
                           "ipc:///a", "ipc://a"}) {
    EXPECT_EQ(parse_zmq_endpoint(text), text);
  }
  expect_messages(
      parse_zmq_endpoint,
      {{"", "'' is no ZeroMQ endpoint; write tcp://host:port or ipc:///path"},
       {"ipc://", "'ipc://' is no ZeroMQ endpoint; write tcp://host:port or ipc:///path"},
       {"inproc://a", "'inproc://a' is no ZeroMQ endpoint; write tcp://host:port or ipc:///path"},
       {"tcp://", "has no port; write host:port"},
       {"tcp://*:*", "port '*' is not a number from 1 to 65535"},
       {"tcp://*x:1", "'*x' is not a host name or an address"},
       {"tcp://h:1/a", "port '1/a' is not a number from 1 to 65535"}});
}

TEST(Path, IsWhateverIsNotEmpty) {
  EXPECT_EQ(parse_path(" a b "), " a b ");
  expect_messages(parse_path, {{"", "must name a file"}});
}

TEST(Shown, CutsAfterSixtyBytes) {
  EXPECT_EQ(shown(std::string(60, 'x')), "'" + std::string(60, 'x') + "'");
  EXPECT_EQ(shown(std::string(61, 'x')), "'" + std::string(60, 'x') + "…'");
  EXPECT_EQ(shown(""), "''");
}

TEST(Shown, IsCutBetweenCharacters) {
  const std::string before(58, 'x');
  EXPECT_EQ(shown(before + "ä" + "y"), "'" + before + "ä…'");  // ends at the sixtieth byte
  EXPECT_EQ(shown(before + "y" + "ä"), "'" + before + "y…'");
  EXPECT_EQ(shown(before + "😀"), "'" + before + "…'");
  EXPECT_EQ(shown(before + "ä"), "'" + before + "ä'");
}

// Letters to add, leave out, replace or swap with their neighbour, by trying everything: slow, and
// without a table that could be indexed wrongly.
std::size_t naive_distance(std::string_view a, std::string_view b) {
  if (a.empty() || b.empty()) return a.size() + b.size();
  if (a.back() == b.back()) {
    return naive_distance(a.substr(0, a.size() - 1), b.substr(0, b.size() - 1));
  }
  const auto without_last = [](std::string_view text) { return text.substr(0, text.size() - 1); };
  std::size_t best =
      1 + std::min({naive_distance(without_last(a), b), naive_distance(a, without_last(b)),
                    naive_distance(without_last(a), without_last(b))});
  if (a.size() > 1 && b.size() > 1 && a[a.size() - 2] == b.back() && a.back() == b[b.size() - 2]) {
    best = std::min(best, 1 + naive_distance(a.substr(0, a.size() - 2), b.substr(0, b.size() - 2)));
  }
  return best;
}

TEST(Nearest, IsTheFirstOfTheLeastDistance) {
  std::mt19937 random(5);
  const auto word = [&random](std::size_t least) {
    std::string text;
    for (std::size_t n = least + random() % 5; n > 0; --n) {
      text += static_cast<char>('a' + random() % 3);
    }
    return text;
  };
  for (int round = 0; round < 400; ++round) {
    const std::string text = word(2);
    const std::vector<std::string> words{word(1), word(1), word(1)};
    const std::vector<std::string_view> candidates(words.begin(), words.end());
    std::size_t least = std::max<std::size_t>(1, text.size() / 3) + 1;
    std::string_view expected;
    for (const std::string_view candidate : candidates) {
      if (const std::size_t distance = naive_distance(text, candidate); distance < least) {
        least = distance;
        expected = candidate;
      }
    }
    if (expected.empty()) {  // then the only one that begins so
      std::vector<std::string_view> begun;
      std::ranges::copy_if(candidates, std::back_inserter(begun),
                           [&](std::string_view one) { return one.starts_with(text); });
      if (begun.size() == 1) expected = begun.front();
    }
    EXPECT_EQ(nearest(text, candidates), expected)
        << text << " of " << fmt::format("{}", fmt::join(words, " "));
  }
}

TEST(UnknownChoice, OffersTheNearestOrAll) {
  constexpr std::array<std::string_view, 2> kWords{"left", "right"};
  EXPECT_EQ(unknown_choice("rihgt", kWords), "unknown 'rihgt'; did you mean right?");
  EXPECT_EQ(unknown_choice("up", kWords), "unknown 'up'; write one of left, right");
}

TEST(Choice, IsWhatItsReaderKnows) {
  constexpr std::array<std::string_view, 2> kWords{"left", "right"};
  const auto read = [](std::string_view text) -> std::optional<int> {
    return text == "left" ? std::optional(-1) : text == "right" ? std::optional(1) : std::nullopt;
  };
  EXPECT_EQ(parse_choice<int>("left", read, kWords), -1);
  EXPECT_EQ(parse_choice<int>("Left", read, kWords).error(), "unknown 'Left'; did you mean left?");
}

}  // namespace
}  // namespace baton::config
