-- Leave the queue, give back what was handed over meanwhile, and see that a free lock finds its next
-- owner. Also the release after a request that was never answered.
-- KEYS  1 lock  2 record; and so on for each lock
-- ARGV  1 incarnation; '' in quarantine  2 flags of this attempt's hold, if they tell it from another attempt's
--       of the same owner; or ''  3 owner; and so on for each lock
-- include lib/keys.lua
-- include lib/incarnation.lua
-- include lib/party.lua
-- include lib/queue.lua
if #KEYS > 2 then
    call('DEL', party_key(ARGV[3], 'p'), party_key(ARGV[3], 'w'))
end
for i = 1, #KEYS / 2 do
    use(i)
    leave_lock(ARGV[2 + i], ARGV[1], ARGV[2])
end
return {'left'}
