/* driver.cc - does with holdfast.hpp what it is told, line by line: tests/bindings/README.md. */
#include <holdfast.hpp>

#include <cjson/cJSON.h>
#include <fstream>
#include <functional>
#include <future>
#include <iostream>
#include <map>

using namespace std::chrono_literals;
using holdfast::Lease;
using holdfast::milliseconds;

namespace {

std::optional<holdfast::Store> store;
std::map<int, Lease> leases;
std::map<int, holdfast::Leases> sets; /* what all() took */

/* A wait in the background, cancelled by a stop token. */
struct Task {
    std::stop_source stop;
    std::future<cJSON *> answer;
};
std::map<int, Task> tasks;

double now_ms()
{
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/* The arguments of a line. */
struct Line {
    const cJSON *array;
    const cJSON *at(int i) const { return cJSON_GetArrayItem(array, i + 1); }
    std::string text(int i) const { return cJSON_IsString(at(i)) ? at(i)->valuestring : ""; }
    long number(int i) const { return at(i) != nullptr ? static_cast<long>(at(i)->valuedouble) : 0; }
    milliseconds time(int i) const { return number(i) < 0 ? holdfast::forever : milliseconds(number(i)); }
    bool flag(int i) const { return cJSON_IsTrue(at(i)); }
    int slot() const { return static_cast<int>(number(0)); }
    /* The names under any or all, if that is what the name is. */
    std::optional<holdfast::Names> names(int i, const char *kind) const
    {
        const cJSON *list = cJSON_GetObjectItem(at(i), kind), *one;
        holdfast::Names out;

        cJSON_ArrayForEach(one, list) out.push_back(one->valuestring);
        return list != nullptr ? std::optional(out) : std::nullopt;
    }
};

cJSON *said(cJSON *what)
{
    cJSON *answer = cJSON_CreateObject();

    cJSON_AddItemToObject(answer, "ok", what);
    cJSON_AddNumberToObject(answer, "at", now_ms());
    return answer;
}

cJSON *fine() { return said(cJSON_CreateTrue()); }

std::string reason_of(hf_loss loss)
{
    static const char *const words[] = {"", "expired", "taken", "broken", "unreachable", "forgotten", "closed"};

    return words[loss];
}

cJSON *failed(const char *name, const std::exception &error)
{
    cJSON *answer = cJSON_CreateObject();

    cJSON_AddStringToObject(answer, "error", name);
    cJSON_AddStringToObject(answer, "text", error.what());
    cJSON_AddNumberToObject(answer, "at", now_ms());
    return answer;
}

template <class E> cJSON *failed_as(const char *name, const E &error)
{
    cJSON *answer = failed(name, error);

    cJSON_AddStringToObject(answer, "reason", reason_of(error.reason()).c_str());
    cJSON_AddNumberToObject(answer, "retry_after_ms", static_cast<double>(error.retry_after().count()));
    return answer;
}

/* Each by its type. */
cJSON *guarded(const std::function<cJSON *()> &body)
{
    try {
        return body();
    }
#define CATCH(Type)                                                                                \
    catch (const holdfast::Type &error) { return failed_as(#Type, error); }
    CATCH(Busy)
    CATCH(Lost)
    CATCH(Stale)
    CATCH(Cancelled)
    CATCH(Unknown)
    CATCH(Unreachable)
    CATCH(Quarantine)
    CATCH(Denied)
    CATCH(Invalid)
    CATCH(Unsupported)
    CATCH(Corrupt)
    CATCH(NoMemory)
#undef CATCH
    catch (const std::exception &error) { return failed("Body", error); }
}

template <class T> cJSON *with_remaining(cJSON *answer, const T &lease)
{
    cJSON_AddNumberToObject(answer, "remaining", static_cast<double>(lease.remaining().count()));
    return answer;
}

cJSON *taken(int slot, Lease lease)
{
    cJSON *answer = with_remaining(said(cJSON_CreateString(std::to_string(lease.token()).c_str())), lease);

    cJSON_AddStringToObject(answer, "name", lease.name().c_str());
    leases[slot] = std::move(lease);
    return answer;
}

cJSON *taken_all(int slot, holdfast::Leases all)
{
    cJSON *answer = with_remaining(said(cJSON_CreateString(std::to_string(all[0].token()).c_str())), all);
    std::string names;

    for (Lease &lease : all)
        names += (names.empty() ? "" : "+") + lease.name();
    cJSON_AddStringToObject(answer, "name", names.c_str());
    sets[slot] = std::move(all);
    return answer;
}

/* Does it with what is in that slot. */
template <class F> cJSON *about(const Line &line, F &&body)
{
    auto all = sets.find(line.slot());

    return all != sets.end() ? body(all->second) : body(leases[line.slot()]);
}

cJSON *take(const Line &line, std::stop_token stop)
{
    holdfast::Options options{line.time(2), line.time(3)};

    options.label = line.text(4);
    options.keeper = !cJSON_IsFalse(line.at(5));
    if (auto names = line.names(1, "any"))
        return taken(line.slot(), store->any(*names, options, stop));
    if (auto names = line.names(1, "all"))
        return taken_all(line.slot(), store->all(*names, options, stop));
    return taken(line.slot(), store->lock(line.text(1), options, stop));
}

cJSON *begin(const Line &line)
{
    Task &task = tasks[line.slot()];
    cJSON *copy = cJSON_Duplicate(line.array, true);

    task.stop = std::stop_source();
    task.answer = std::async(std::launch::async, [copy, stop = task.stop.get_token()] {
        cJSON *answer = guarded([&] { return take(Line{copy}, stop); });
        cJSON_Delete(copy);
        return answer;
    });
    return fine();
}

cJSON *lost(const Line &line)
{
    return about(line, [](auto &held) {
        std::promise<void> told;
        std::stop_callback tell(held.stop_token(), [&] { told.set_value(); });

        told.get_future().wait_for(60s);
        return said(cJSON_CreateString(reason_of(held.try_check().failure().reason).c_str()));
    });
}

cJSON *with(const Line &line)
{
    holdfast::Options options{line.time(1)};

    auto body = [&](auto &) {
        std::this_thread::sleep_for(line.time(4));
        if (line.flag(2))
            throw std::runtime_error("the body failed");
    };

    options.keeper = line.flag(3);
    if (auto names = line.names(0, "all"))
        store->with_all(*names, options, body);
    else
        store->with_lock(line.text(0), options, body);
    return fine();
}

cJSON *get(const Line &line)
{
    auto record = store->get(line.text(0), line.text(1));
    cJSON *answer = said(record ? cJSON_CreateString(record->value.c_str()) : cJSON_CreateNull());

    if (record)
        cJSON_AddStringToObject(answer, "token", std::to_string(record->token).c_str());
    return answer;
}

cJSON *elect(const Line &line)
{
    Lease lease = store->lock(line.text(1), {30s, holdfast::forever});

    lease.put(HF_LEADER_KEY, line.text(2));
    return taken(line.slot(), std::move(lease));
}

cJSON *leader(const Line &line)
{
    auto found = store->leader(line.text(0));
    cJSON *answer = said(found ? cJSON_CreateString(std::to_string(found->term).c_str()) : cJSON_CreateNull());

    if (found)
        cJSON_AddStringToObject(answer, "address", found->address.c_str());
    return answer;
}

cJSON *once(const Line &line)
{
    static const char *const words[] = {"open", "run", "done", "failed", "late", "held"};
    const cJSON *given = line.at(1);
    auto number = [&](const char *name) { return static_cast<long>(cJSON_GetNumberValue(cJSON_GetObjectItem(given, name))); };
    auto word = [&](const char *name) {
        const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(given, name));
        return std::string(text != nullptr ? text : "");
    };
    holdfast::OnceOptions options;
    long failures = line.number(2);

    if (cJSON_HasObjectItem(given, "per"))
        options.per = milliseconds(number("per"));
    if (cJSON_HasObjectItem(given, "retries"))
        options.retries = static_cast<std::uint32_t>(number("retries"));
    if (cJSON_HasObjectItem(given, "wait"))
        options.wait = number("wait") < 0 ? holdfast::forever : milliseconds(number("wait"));
    options.tz = word("tz");
    options.label = word("label");
    auto once = store->once(line.text(0), options, [&](holdfast::Turn &turn) {
        turn.check();
        if (failures-- > 0)
            throw std::runtime_error("the body failed");
    });
    cJSON *answer = said(cJSON_CreateString(words[once.outcome]));

    cJSON_AddBoolToObject(answer, "ran", once.ran);
    cJSON_AddStringToObject(answer, "text", once.text.c_str());
    return answer;
}

cJSON *turns(const Line &line)
{
    for (long i = 0; i < line.number(0); i++) {
        store->with_lock(line.text(1), {30s, holdfast::forever}, [&](Lease &) {
            long value;
            std::ifstream(line.text(2)) >> value;
            std::ofstream(line.text(2), std::ios::in) << value + 1;
            std::ofstream(line.text(2) + ".log", std::ios::app) << line.text(3) << "\n";
        });
    }
    return fine();
}

cJSON *release(const Line &line)
{
    return about(line, [&](auto &held) {
        auto mine = std::move(held);

        sets.erase(line.slot());
        mine.release();
        return fine();
    });
}

const std::map<std::string, cJSON *(*)(const Line &)> commands = {
    {"open",
     [](const Line &line) {
         store.emplace(line.text(0), line.time(1));
         return said(cJSON_CreateString(store->url().c_str()));
     }},
    {"close", [](const Line &) { return store.reset(), fine(); }},
    {"lock", [](const Line &line) { return take(line, {}); }},
    {"begin", begin},
    {"cancel", [](const Line &line) { return tasks[line.slot()].stop.request_stop(), fine(); }},
    {"join", [](const Line &line) { return tasks[line.slot()].answer.get(); }},
    {"lost", lost},
    {"with", with},
    {"put", [](const Line &line) { return leases[line.slot()].put(line.text(1), line.text(2)), fine(); }},
    {"get", get},
    {"elect", elect},
    {"leader", leader},
    {"once", once},
    {"turns", turns},
    {"check", [](const Line &line) { return about(line, [](auto &held) { return held.check(), fine(); }); }},
    {"break",
     [](const Line &line) { return store->break_(line.text(0), std::stoull(line.text(1)), line.text(2)), fine(); }},
    {"renew",
     [](const Line &line) {
         leases[line.slot()].renew(line.time(1));
         return with_remaining(fine(), leases[line.slot()]);
     }},
    {"release", release},
    {"remaining",
     [](const Line &line) { return about(line, [](auto &held) { return with_remaining(fine(), held); }); }},
};

} // namespace

int main()
{
    std::string text;

    while (std::getline(std::cin, text)) {
        cJSON *parsed = cJSON_Parse(text.c_str());
        Line line{parsed};
        cJSON *answer = guarded([&] { return commands.at(cJSON_GetArrayItem(parsed, 0)->valuestring)(line); });
        char *printed = cJSON_PrintUnformatted(answer);

        std::cout << printed << std::endl;
        std::free(printed);
        cJSON_Delete(answer);
        cJSON_Delete(parsed);
    }
    std::quick_exit(0);
}
