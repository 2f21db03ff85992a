-- A fenced key: written only with a token that is not below the highest admitted.
--
-- KEYS[1]  the key
-- KEYS[2]  its mark, a hash at holdfast:{KEY}:fence, or, for a KEY with a hash tag of its own such as
--          {42}:total, at holdfast:{TAG}:KEY:fence
-- ARGV[1]  set | del | enter | reset | read
-- ARGV[2]  token, decimal, 1 to 2^63-1 (reset: the mark to start from, 0: none; read: nothing)
-- ARGV[3]  issuer: the store that issued the token, "" if that is not said
-- ARGV[4]  set: the value; reset: the reason
-- ARGV[5]  set: milliseconds until the key expires, "0": never
-- ARGV[6]  "array": refusals come as arrays of the words below, not as errors; may be left out
-- ARGV[7]  the url of that store: for marks that name their issuer by it; may be left out
--
-- Answers OK; read: "MARK", token, seconds, issuer, and changes nothing; or an error:
-- "STALE token seconds issuer" (that token was admitted, at that time), "FOREIGN issuer" (the mark
-- follows that store's tokens), "BADTOKEN token", "BADOP op", "BADMARK key" (that is not the key of the
-- mark). Tokens are compared as decimal strings, by length and then by bytes: a Lua number is exact only
-- up to 2^53.
local key, mark_key, op, token, issuer = KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3]

local function refuse(...)
    if ARGV[6] == 'array' then
        return {...}
    end
    return redis.error_reply(table.concat({...}, ' '))
end

if op ~= 'set' and op ~= 'del' and op ~= 'enter' and op ~= 'reset' and op ~= 'read' then
    return redis.error_reply('BADOP ' .. op)
end

-- Whoever could name a different mark than the others would write past theirs.
local tag = string.match(key, '^[^{]*{([^}]+)}')
if mark_key ~= 'holdfast:{' .. (tag and tag .. '}:' .. key .. ':' or key .. '}:') .. 'fence' then
    return refuse('BADMARK', mark_key)
end

if op == 'read' then
    local mark = redis.call('HMGET', mark_key, 'token', 'issuer', 'at')
    return {'MARK', mark[1] or '0', mark[3] or '0', mark[2] or ''}
end

local function below(a, b)
    if #a ~= #b then
        return #a < #b
    end
    return a < b
end

if not string.match(token, '^[1-9]%d*$') or below('9223372036854775807', token) then
    if op ~= 'reset' or token ~= '0' then
        return refuse('BADTOKEN', token)
    end
end

-- Most writes come from the holder that is admitted already: one comparison, nothing to store.
if op == 'reset' or redis.call('HGET', mark_key, 'is') ~= token .. ' ' .. issuer then
    local mark = redis.call('HMGET', mark_key, 'token', 'issuer', 'at')
    local admitted, follows, at = mark[1] or '0', mark[2] or '', mark[3] or '0'
    local now = redis.call('TIME')[1]

    if op == 'reset' then
        redis.call('RPUSH', mark_key .. ':resets', now .. ' reset ' .. admitted .. ' of ' .. follows
            .. ' to ' .. token .. ' of ' .. issuer .. ': ' .. ARGV[4])
        redis.call('HSET', mark_key, 'token', token, 'issuer', issuer, 'at', now,
            'is', token .. ' ' .. issuer)
        return redis.status_reply('OK')
    end
    local url = ARGV[7] or ''
    if url ~= '' and follows ~= '' and string.sub(follows, 1, 3) ~= 'id:' then
        if issuer == '' then
            issuer = url
        elseif string.sub(issuer, 1, 3) == 'id:' and follows == url then
            follows = ''
        end
    end
    if issuer ~= '' and follows ~= '' and issuer ~= follows then
        return refuse('FOREIGN', follows)
    end
    if below(token, admitted) then
        return refuse('STALE', admitted, at, follows)
    end
    if token ~= admitted or (follows == '' and issuer ~= '') then
        if follows == '' then
            follows = issuer
        end
        redis.call('HSET', mark_key, 'token', token, 'issuer', follows,
            'at', token ~= admitted and now or at, 'is', token .. ' ' .. follows)
    end
end

if op == 'set' then
    if ARGV[5] and ARGV[5] ~= '0' then
        return redis.call('SET', key, ARGV[4], 'PX', ARGV[5])
    end
    return redis.call('SET', key, ARGV[4])
elseif op == 'del' then
    redis.call('DEL', key)
else
    -- Says what the mark says already, but as a write: a replica, whose mark may be old, refuses it.
    redis.call('HSET', mark_key, 'token', token)
end
return redis.status_reply('OK')
